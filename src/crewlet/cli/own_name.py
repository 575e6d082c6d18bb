"""What to type for this very program, for the lines that say what to do next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

__all__ = ["own_name"]


def own_name(*, seen_from: Path | None = None) -> str:
    """``crewlet`` where the path finds this program, else the way to it from the folder (this one, unless named)."""
    program = Path(sys.argv[0])
    on_path = shutil.which("crewlet")
    is_found = on_path is not None and Path(on_path).resolve() == program.resolve()
    if is_found or program.name != "crewlet":
        return "crewlet"
    return shlex.quote(os.path.relpath(program, seen_from or Path()))
