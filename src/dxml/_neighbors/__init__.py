"""Nearest points: exact search, k-means cells, and the vote of the neighbours' labels."""
