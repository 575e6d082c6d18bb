"""Where a command finds the node, and which token it shows: ``--url``, then ``-c``, then ``./crewlet.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crewlet.base.errors import ConfigError, Problem

__all__ = ["Whereabouts", "find_node"]

TOKEN_VARIABLE: Final = "CREWLET_API_TOKEN"  # noqa: S105 - a variable's name
DEFAULT_FILE: Final = "crewlet.yaml"
_DEFAULT_URL: Final = "http://127.0.0.1:8000"
_EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not bound


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A node's address and the token to show it; ``found_in`` says where the token came from."""

    url: str
    token: str = field(default="", repr=False)
    found_in: str = "none was found"

    def headers(self) -> dict[str, str]:
        """The headers that every request carries."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def find_node(url: str, config: str, environment: Mapping[str, str]) -> Whereabouts:
    """The node that the options mean. Raises ``ConfigError`` for an unusable file or address.

    The token comes from ``CREWLET_API_TOKEN``, else from the data directory that the node file names.
    """
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError(Problem("--url", f"{url!r} is no http address", "write it like http://127.0.0.1:8000"))
    file = config or (DEFAULT_FILE if Path(DEFAULT_FILE).is_file() else "")
    address, token_file = _from_file(file, environment) if file else (_DEFAULT_URL, Path(".crewlet", "operator-token"))
    found = (url or address).rstrip("/")
    if environment.get(TOKEN_VARIABLE):
        return Whereabouts(found, environment[TOKEN_VARIABLE], TOKEN_VARIABLE)
    return _with_token_file(found, token_file)


def _from_file(file: str, environment: Mapping[str, str]) -> tuple[str, Path]:
    from crewlet.config import load_node_file

    config = load_node_file(Path(file), environment).config
    host = "127.0.0.1" if config.api.host in _EVERY_ADDRESS else config.api.host
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{config.api.port}", config.api.token_file


def _with_token_file(url: str, token_file: Path) -> Whereabouts:
    try:
        token = token_file.read_text(encoding="utf-8").strip()
    except OSError:
        return Whereabouts(url, found_in=f"{token_file} cannot be read")
    return Whereabouts(url, token, str(token_file))
