"""The graph of labels that share a point, walks on it, and a vector for every label."""
