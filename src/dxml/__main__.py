"""``python -m dxml``."""

from dxml._cli import main

if __name__ == "__main__":
    main()
