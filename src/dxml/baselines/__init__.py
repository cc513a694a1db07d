"""The methods the paper compares with, one a file."""
