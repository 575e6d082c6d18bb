"""Where a command finds the node, and which token it shows: ``--url``, then ``-c``, then ``./crewlet.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

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
    """The node that the options mean. Raises ``ConfigError`` for an unusable file, address or token.

    The token comes from ``CREWLET_API_TOKEN``, else from the data directory that the node file names. A node file that
    only lies here is not read where nothing is wanted of it.
    """
    given = _checked(url) if url else ""
    token = environment.get(TOKEN_VARIABLE, "").strip()
    if given and token and not config:
        return Whereabouts(given, _usable(token, TOKEN_VARIABLE), TOKEN_VARIABLE)
    file = config or (DEFAULT_FILE if Path(DEFAULT_FILE).is_file() else "")
    address, token_file = _from_file(file, environment) if file else (_DEFAULT_URL, Path(".crewlet", "operator-token"))
    if not (given or address):
        raise ConfigError(Problem("api.port", "is 0, so this node has no API", "set a port, or give --url"), file=file)
    if token:
        return Whereabouts(given or address, _usable(token, TOKEN_VARIABLE), TOKEN_VARIABLE)
    return _with_token_file(given or address, token_file)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or any(character.isspace() for character in url):
        raise ConfigError(Problem("--url", f"{url!r} is no http address", "write it like http://127.0.0.1:8000"))
    return url.rstrip("/")


def _from_file(file: str, environment: Mapping[str, str]) -> tuple[str, Path]:
    from crewlet.config import load_node_address

    node = load_node_address(file, environment)
    host = node.host.strip("[]")
    host = "127.0.0.1" if host in _EVERY_ADDRESS else host
    address = f"[{host}]" if ":" in host else host
    return (f"http://{address}:{node.port}" if node.port else ""), node.token_file


def _with_token_file(url: str, token_file: Path) -> Whereabouts:
    try:
        token = token_file.read_text(encoding="utf-8").strip()
    except OSError:
        return Whereabouts(url, found_in=f"{token_file} cannot be read")
    except UnicodeDecodeError:
        return Whereabouts(url, found_in=f"{token_file} holds no text")
    return Whereabouts(url, _usable(token, str(token_file)), str(token_file))


def _usable(token: str, found_in: str) -> str:
    """The token, where a header can carry it; it is never shown."""
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(Problem(found_in, "holds no token: only plain printable characters can be sent"))
    return token
