"""``python -m dxml``."""

from dxml.cli import main

if __name__ == "__main__":
    main()
