"""The process's standard streams, written to only as long as somebody reads them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final, TextIO

__all__ = ["LastingStream"]

_NOTHING_WRITTEN: Final = 0


class LastingStream:
    """A text stream whose reader may go away: what is written then is dropped and nothing is raised.

    An engine must neither end nor falter in the middle of a turn because whoever read its log has gone, or because
    the disk that the log is on is full.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write ``text`` if it can be written; the number of characters taken."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._let_go()
        except (OSError, ValueError):
            # A full disk may have room again; a closed stream takes nothing any more.
            pass
        return _NOTHING_WRITTEN

    def flush(self) -> None:
        """Hand on what is buffered, if it can be."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._let_go()
        except (OSError, ValueError):
            pass

    def _let_go(self) -> None:
        """Put the null device in place of the pipe: the interpreter flushes once more at its end, and must not fail."""
        with suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.dup2(null, self._stream.fileno())
            finally:
                os.close(null)
