"""`python -m muster`: the command."""

from muster.cli.main import main

if __name__ == "__main__":
    main()
