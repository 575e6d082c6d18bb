"""What a function that works on the database may ask of its connection: the driver's own, under types of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

__all__ = ["Connection", "Rows", "Value"]

Value = str | int | float | bytes | None


class Rows(Protocol):
    """The result of a statement, read as it is iterated."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Each row in turn."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        ...

    @property
    def get(self) -> Any:  # noqa: ANN401 - whatever the statement selects
        """The one value of the one row; a tuple of values, or a list of rows, where there are more; else ``None``."""
        ...


class Connection(Protocol):
    """A connection inside a transaction that its giver began and will end."""

    @property
    def in_transaction(self) -> bool:
        """Whether the transaction stands; a full disk or a failed write ends it."""
        ...

    @property
    def filename(self) -> str:
        """The database's file."""
        ...

    def execute(self, statements: str, bindings: Sequence[Value] = ()) -> Rows:
        """Run SQL with its ``?`` bound; runs up to the first row, and on as the rows are read."""
        ...

    def changes(self) -> int:
        """How many rows the last statement inserted, changed or deleted."""
        ...

    def last_insert_rowid(self) -> int:
        """The row id of the last insert."""
        ...

    def set_progress_handler(self, callable: Callable[[], bool] | None, nsteps: int = 100) -> None:  # noqa: A002
        """Ask every ``nsteps`` whether to interrupt what runs."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...
