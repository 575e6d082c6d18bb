"""A small company to start from: what `crewlet init` writes."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from crewlet.base.errors import StartRefused

__all__ = ["STARTER_FILES", "write_starter"]

STARTER_FILES: Final = ("crewlet.yaml", "company.yaml", "offline.yaml")
"""The node file, the company document, and the replies of its scripted model."""

_OWNER_ONLY: Final = 0o600


def write_starter(folder: Path) -> tuple[Path, ...]:
    """Write the files into ``folder``, making it if need be. Raises ``StartRefused`` rather than overwrite any."""
    taken = [name for name in STARTER_FILES if (folder / name).exists()]
    if taken:
        raise StartRefused(f"{folder} already has {', '.join(taken)}", "choose another folder, or move them away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tuple(_write(folder / name) for name in STARTER_FILES)
    except OSError as error:
        raise StartRefused(f"{folder} cannot be written: {error.strerror}", "choose another folder") from None


def _write(path: Path) -> Path:
    text = resources.files("crewlet.config.starter").joinpath(path.name).read_text(encoding="utf-8")
    with path.open("x", encoding="utf-8") as file:  # Another process may have been faster: never over its file.
        if path.name == "crewlet.yaml":
            path.chmod(_OWNER_ONLY)  # So that a token written into it later is taken without a warning.
        file.write(text)
    return path
