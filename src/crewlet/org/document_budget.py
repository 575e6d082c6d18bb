"""How many tokens may be spent in each calendar window, as the company document says it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from crewlet.base import limits
from crewlet.org.document_part import DocumentPart, refused

__all__ = ["TokenBudgetDocument"]

_Ceiling = Annotated[int, Field(gt=0, le=limits.TOKEN_CEILING_MAX)]


class TokenBudgetDocument(DocumentPart):
    """Ceilings in tokens, by window on the company's clock (``timezone``). A window without one has no limit."""

    day: _Ceiling | None = None
    """From midnight."""
    week: _Ceiling | None = None
    """The ISO week, from Monday."""
    month: _Ceiling | None = None
    """The calendar month."""

    @model_validator(mode="before")
    @classmethod
    def _no_single_number(cls, written: object) -> object:
        if isinstance(written, (int, float)):
            raise refused("must say which window it is for", "write for example `token_budget: {day: 500000}`")
        return written
