"""Text of models, colleagues and outsiders made fit for a terminal: nothing in it moves a cursor or hides a word."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["one_line", "plain"]

_SEQUENCE: Final = re.compile(
    r"""
    \x1b\[[0-?]*[ -/]*[@-~]             # colours, cursors, screens
    | \x1b[\]P_^X].*?(?:\x07|\x1b\\)    # titles, links, clipboards
    | \x1b(?:\[[0-?]*[ -/]*|[\]P_^X][^\n]*)?\Z  # one that is not complete yet
    """,
    re.VERBOSE | re.DOTALL,
)
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\N{LEFT-TO-RIGHT EMBEDDING}-\N{RIGHT-TO-LEFT OVERRIDE}"
    "\N{LEFT-TO-RIGHT ISOLATE}-\N{POP DIRECTIONAL ISOLATE}]"
)
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


def plain(text: object) -> str:
    """``text`` without terminal sequences, control characters (newline and tab stay) and turned reading directions."""
    shown = _CONTROL.sub("", _SEQUENCE.sub("", str(text)))
    return _HALF_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", shown)


def one_line(text: object) -> str:
    """The same in one line, each run of white space one blank."""
    return " ".join(plain(text).split())
