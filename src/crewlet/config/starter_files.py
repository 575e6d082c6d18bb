"""A small company to start from: what `crewlet init` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from crewlet.base.errors import StartRefused

__all__ = ["STARTER_FILES", "write_files", "write_starter"]

STARTER_FILES: Final = ("crewlet.yaml", "company.yaml", "offline.yaml")
"""The node file, the company document, and the replies of its scripted model."""

_OWNER_ONLY: Final = 0o600


def write_starter(folder: Path) -> tuple[Path, ...]:
    """Write the files into ``folder``, making it if need be. Raises ``StartRefused`` rather than overwrite any."""
    return write_files(folder, STARTER_FILES[1:], {"crewlet.yaml": _shipped("crewlet.yaml")})


def write_files(folder: Path, shipped: Sequence[str], nodes: Mapping[str, str]) -> tuple[Path, ...]:
    """Write node files, by their names, and files as they ship beside them; see :func:`write_starter`."""
    names = [*nodes, *shipped]
    taken = [name for name in names if (folder / name).exists()]
    if taken:
        raise StartRefused(f"{folder} already has {', '.join(taken)}", "choose another folder, or move them away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tuple(
            _write(folder / name, nodes.get(name) or _shipped(name), owner_only=name in nodes) for name in names
        )
    except OSError as error:
        raise StartRefused(f"{folder} cannot be written: {error.strerror}", "choose another folder") from None


def _shipped(name: str) -> str:
    return resources.files("crewlet.config.starter").joinpath(name).read_text(encoding="utf-8")


def _write(path: Path, text: str, *, owner_only: bool) -> Path:
    with path.open("x", encoding="utf-8") as file:  # Another process may have been faster: never over its file.
        if owner_only:
            path.chmod(_OWNER_ONLY)  # So that a secret in it is taken without a warning.
        file.write(text)
    return path
