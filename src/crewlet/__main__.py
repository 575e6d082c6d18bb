"""``python -m crewlet`` is the ``crewlet`` command."""

import sys

from crewlet.cli import main

if __name__ == "__main__":
    sys.exit(main())
