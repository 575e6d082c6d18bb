"""Who a node is to the broker, and how its link is secured."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crewlet.base.errors import StartRefused

__all__ = ["Login", "LoginRefused", "TlsFiles", "read_credentials"]

_CREDENTIALS_PARTS: Final = ("-----BEGIN NATS USER JWT-----", "-----BEGIN USER NKEY SEED-----")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of PEM files: the authority that signed the broker's certificate, and our own certificate and key."""

    ca: str = ""
    cert: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext:
        """The context to dial with. Raises ``StartRefused`` naming the files when they do not load."""
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(path for path in (self.ca, self.cert, self.key) if path)
            raise StartRefused(f"cannot load the broker's TLS files {files}: {error}", "check stream.tls") from error
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who we are to the broker: a seed held in memory, a credentials file, or a token; and how the link is secured."""

    seed: str = field(default="", repr=False)
    credentials: str = ""
    token: str = field(default="", repr=False)
    tls: TlsFiles | None = None


class LoginRefused(StartRefused):
    """The broker does not know us."""


def read_credentials(path: str) -> str:
    """The text of a credentials file; it blocks. Raises ``StartRefused`` where the file holds no login."""
    try:
        text = Path(path).expanduser().read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise StartRefused(f"cannot read the credentials file {path}: {error}", "check stream.credentials") from error
    # The library searches a file that lacks either of them for ever, on the event loop.
    if not all(part in text for part in _CREDENTIALS_PARTS):
        raise StartRefused(f"{path} is not a credentials file: it holds no login and seed", "check stream.credentials")
    return text
