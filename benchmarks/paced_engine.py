"""The real ``crewlet`` at another pace than the shipped one.

    python paced_engine.py NAME=NUMBER... run OPTIONS...

Each ``NAME`` is a bound of ``crewlet.base.limits``, replaced before anything else is imported.
"""

from __future__ import annotations

import sys

from crewlet.base import limits


def main(arguments: list[str]) -> int:
    """The command's exit code."""
    paces = [each for each in arguments if "=" in each and not each.startswith("-")]
    for name, _, number in (each.partition("=") for each in paces):
        shipped = getattr(limits, name)
        setattr(limits, name, type(shipped)(float(number)))

    from crewlet.cli import main as crewlet

    return crewlet(arguments[len(paces) :])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
