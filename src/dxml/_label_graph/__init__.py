"""The graph of labels that occur together, random walks on it, and label vectors (DeepWalk)."""
