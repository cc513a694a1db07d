"""What every room stands on: parameters, checks, storage, seeds, threads, sparse rows."""
