"""The commands. Starting is cheap: each command imports what it needs when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

_STACK_WANTED = "CREWLET_TRACEBACK"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. No traceback of an expected error reaches the user."""
    try:
        from crewlet.cli.standard_input_output import settle_streams

        settle_streams()
        return _main(argv)
    except KeyboardInterrupt:
        return 130


def _main(argv: Sequence[str] | None) -> int:
    from crewlet.base.errors import ConfigError, CrewletError
    from crewlet.cli.arguments import parse
    from crewlet.cli.standard_input_output import flush_output

    command = parse(argv)

    from crewlet.base.logging import configure_logging

    # Standard output is for results; ``run`` follows the node file from here on.
    configure_logging("warn", "console")
    try:
        code = command.run()
        unwritten = flush_output()
        if unwritten:
            _say(f"the output could not be written: {unwritten}")
        return code or (1 if unwritten else 0)
    except ConfigError as error:
        _say(str(error))
        return 2
    except CrewletError as error:
        _say(str(error))
        return 1
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining about it at exit.
        sys.stdout = None
        return 141
    except Exception as fault:  # the outermost supervisor: a fault of ours is told in one line, its stack on request
        if os.environ.get(_STACK_WANTED):
            raise
        _say(f"internal error: {type(fault).__name__}: {fault}; set {_STACK_WANTED}=1 to see where")
        return 70


def _say(text: str) -> None:
    from crewlet.cli.plain_text import plain

    sys.stderr.write(f"crewlet: {plain(text)}\n")
