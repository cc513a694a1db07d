"""Shared by all other folders: parameters, input checks, storage, seeds, threads, sparse rows."""
