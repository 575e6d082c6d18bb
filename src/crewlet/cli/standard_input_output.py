"""The standard streams of a command, whatever it was started with: closed, or in an encoding that is not UTF-8."""

from __future__ import annotations

import os
import sys
from typing import Any, Final, cast

__all__ = ["flush_output", "read_input", "settle_streams"]

_STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def settle_streams() -> None:
    """Have all three from now on: a closed one is the null device, and what an encoding lacks is written escaped."""
    for name, mode in _STREAMS:
        stream: Any = getattr(sys, name)
        if stream is None:
            # Taken at once, or the next file or socket that is opened would get the closed one's number.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open to the end
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def read_input(max_bytes: int) -> bytes:
    """What stands on standard input, at most one byte more than ``max_bytes``."""
    raw: Any = getattr(sys.stdin, "buffer", None)
    return cast("bytes", raw.read(max_bytes + 1)) if raw is not None else sys.stdin.read(max_bytes + 1).encode()


def flush_output() -> str:
    """Hand on what was written; why that failed, or nothing. Raises ``BrokenPipeError``."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - it may be
        return ""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # The interpreter would try, and complain, once more at its end.
        sys.stdout = None
        return error.strerror or str(error)
    return ""
