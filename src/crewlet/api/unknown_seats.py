"""What to say of a handle that no seat has: what was probably meant, and what there is. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from crewlet.api.refusals import Refused
from crewlet.base import limits
from crewlet.node.face import NoSuchSeat

__all__ = ["no_such_seat", "not_an_agent"]


def no_such_seat(error: NoSuchSeat) -> Refused:
    """404, with the handles that are known and the one that is nearest."""
    near = _nearest(error.handle.lower(), error.known)
    shown = error.known[: limits.API_KNOWN_HANDLES_MAX]
    guess = f"; did you mean {near!r}?" if near else ""
    more = ", …" if len(shown) < len(error.known) else ""
    detail: dict[str, Any] = {"known": shown}
    if near:
        detail["did_you_mean"] = near
    sentence = f"{error}{guess} (known: {', '.join(shown)}{more})" if shown else f"{error}{guess}"
    return Refused(404, "no_such_seat", sentence, detail=detail)


def not_an_agent(handle: str) -> Refused:
    """409: the seat is a person's."""
    return Refused(409, "not_an_agent", f"the seat {handle!r} is a person's: it has no inbox here")


def _nearest(handle: str, known: Sequence[str]) -> str:
    """The known handle that was probably meant: letters swapped before letters wrong; empty where none is near."""
    swapped = [each for each in known if sorted(each) == sorted(handle)]
    return next(iter(swapped or difflib.get_close_matches(handle, known, n=1)), "")
