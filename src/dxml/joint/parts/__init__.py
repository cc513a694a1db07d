"""The parts of a joint model, one a file; `protocol` says what a part is."""
