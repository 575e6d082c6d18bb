"""The real ``crewlet``, whose standard output and error nobody reads: ``python unread_engine.py COMMAND …``."""

from __future__ import annotations

import os
import sys

from crewlet.cli import main

if __name__ == "__main__":
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    sys.exit(main())
