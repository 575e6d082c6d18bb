"""Opening the database file: its pragmas, its refusals, and what the driver's errors mean outside this room."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import apsw

from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.store.sql import Connection

__all__ = ["meaning_of", "open_reader", "open_writer"]

_BUSY_MS = int(limits.STORE_BUSY_TIMEOUT_S * 1000)

# The caller asked for something impossible; everything else the driver raises means that the database did not serve.
_CALLERS_FAULT = (apsw.ConstraintError, apsw.SQLError, apsw.BindingsError, apsw.MismatchError, apsw.RangeError)

_WRITER_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    f"journal_size_limit = {limits.STORE_WAL_MAX_BYTES}",
    "foreign_keys = ON",
    "temp_store = MEMORY",
    "cache_size = -4096",
)


def open_writer(path: Path) -> Connection:
    """The one connection that writes; makes the file where missing, for its owner's eyes only.

    Raises ``StartRefused`` naming the path.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = apsw.Connection(str(path))
        connection.set_busy_timeout(_BUSY_MS)
    except OSError as error:
        raise _refused(path, error.strerror or repr(error)) from error
    except apsw.Error as error:
        raise _refused(path, str(error)) from error
    owned = cast("Connection", connection)
    try:
        for pragma in _WRITER_PRAGMAS:
            owned.execute(f"PRAGMA {pragma}").fetchall()
    except apsw.Error as error:
        owned.close()
        raise _refused(path, str(error)) from error
    return owned


def open_reader(path: Path) -> Connection:
    """A connection that can only read."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(_BUSY_MS)
    reader = cast("Connection", connection)
    reader.execute("PRAGMA cache_size = -2048").fetchall()
    return reader


def meaning_of(error: Exception) -> Exception:
    """What a caller outside this room is told: the caller's own fault as it is, a failing database ``Unavailable``."""
    if isinstance(error, apsw.Error) and not isinstance(error, _CALLERS_FAULT):
        return _caused(Unavailable(f"the node's database did not serve: {error}"), error)
    if isinstance(error, StopIteration):  # cannot travel through a future
        return _caused(RuntimeError("a database function raised StopIteration"), error)
    return error


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def _refused(path: Path, problem: str) -> StartRefused:
    remedy = "store.path must name a database of this engine, or a new file in a directory that can be written to"
    return StartRefused(f"{path} cannot be opened: {problem}", remedy)
