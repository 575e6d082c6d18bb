"""Which of the engine's environment variables a tool server gets to see: an allow list, never the engine's secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["server_environment"]

_ALLOWED: Final = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "TMPDIR",
        "TERM",
        "TZ",
        "LANG",
        "LANGUAGE",
        # Where the certificates of this machine are.
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        # How this machine reaches the outside; read in both cases.
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
    }
)
_ALLOWED_IN_ANY_CASE: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
_ALLOWED_PREFIXES: Final = ("LC_", "XDG_")


def server_environment(engine: Mapping[str, str], server: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server's process: what is allowed of the engine's, and all that its spec names."""
    inherited = {name: value for name, value in engine.items() if _may_see(name)}
    return {**inherited, **server}


def _may_see(name: str) -> bool:
    return name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES) or name.upper() in _ALLOWED_IN_ANY_CASE
