"""The folder that a node keeps its things in."""

from __future__ import annotations

import tempfile
from pathlib import Path

from crewlet.base.errors import StartRefused

__all__ = ["prepare_data_directory"]


def prepare_data_directory(folder: Path) -> None:
    """Make ``folder`` if need be, for its owner alone, and prove that it can be written. Raises ``StartRefused``."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StartRefused(
            f"the data directory {folder} cannot be written: {error.strerror}",
            "make it writable, or set `data_dir` in the node file",
        ) from None
