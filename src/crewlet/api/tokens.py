"""Who a bearer token speaks for, and the operator's first token in the data directory."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import structlog

from crewlet.api.addresses import is_loopback
from crewlet.api.config import ApiConfig, ApiToken
from crewlet.base import limits
from crewlet.base.errors import StartRefused

__all__ = ["ANONYMOUS", "OPERATOR", "Tokens", "check_guarded", "operator_token", "settle_tokens"]

_log = structlog.get_logger(__name__)

OPERATOR: Final = "operator"
"""The id of the minted token."""
ANONYMOUS: Final = "anonymous"
"""The id of whoever shows no token, where that is allowed."""
_WIDER_THAN_OWNER: Final = 0o077


class Tokens:
    """The tokens that open this node, kept as digests."""

    def __init__(self, tokens: Iterable[ApiToken]) -> None:
        self._known = tuple((_digest(token.token.encode()), token.id) for token in tokens)

    def id_of(self, shown: bytes) -> str | None:
        """The id of the token shown, or ``None``. Takes the same time wherever, and whether, it is found."""
        digest = _digest(shown)
        found: str | None = None
        for known, token_id in self._known:
            if hmac.compare_digest(known, digest):
                found = token_id
        return found


def check_guarded(config: ApiConfig) -> None:
    """Refuse to listen to other machines without a token that nobody guesses. Raises ``StartRefused``."""
    if not (config.tokens or config.disabled or is_loopback(config.host)):
        raise StartRefused(
            f"{config.host} can be reached from other machines, and no token guards it",
            "set `api.auth.tokens`, or `api.host: 127.0.0.1`",
        )
    short = [each.id for each in config.tokens if len(each.token) < limits.API_TOKEN_MIN_CHARS]
    if short and not is_loopback(config.host):
        raise StartRefused(
            f"the token of {short[0]} is shorter than {limits.API_TOKEN_MIN_CHARS} characters,"
            f" and {config.host} can be reached from other machines",
            "write a random one into `api.auth.tokens`: `openssl rand -hex 32`",
        )


def settle_tokens(config: ApiConfig) -> Tokens:
    """The configured tokens, or the minted one. Blocks on the disk. Raises ``StartRefused``."""
    check_guarded(config)
    if config.disabled:
        _log.warning("api_auth_disabled", host=config.host, attribution=ANONYMOUS)
        return Tokens(())
    if config.tokens:
        return Tokens(config.tokens)
    return Tokens((ApiToken(OPERATOR, operator_token(config.token_file)),))


def operator_token(file: Path) -> str:
    """The token in ``file``, minted there if there is none; readable by its owner alone. Raises ``StartRefused``."""
    try:
        return _read(file)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _unusable(file, error.strerror or str(error)) from None
    try:
        _mint(file)
    except FileExistsError:
        pass
    except OSError as error:
        raise _unusable(file, error.strerror or str(error)) from None
    return _read(file)


def _read(file: Path) -> str:
    # Not through a link, and judged by what was opened: nothing can be swapped in between.
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        facts = os.fstat(opened.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise _unusable(file, "it is no plain file")
        if facts.st_uid != os.geteuid():
            raise _unusable(file, "it belongs to somebody else")
        if stat.S_IMODE(facts.st_mode) & _WIDER_THAN_OWNER:
            os.fchmod(opened.fileno(), 0o600)
            _log.warning(
                "operator_token_file_was_open",
                file=str(file),
                mode=oct(stat.S_IMODE(facts.st_mode)),
                remedy="delete it and restart if others may have read it",
            )
        token = opened.read(limits.OPERATOR_TOKEN_FILE_MAX_BYTES).strip()
    if not token or not token.isascii() or not token.decode().isprintable():
        raise _unusable(file, "it holds no token")
    return token.decode()


def _mint(file: Path) -> None:
    """Written whole under another name first: whoever sees the file sees all of it. Raises ``FileExistsError``."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(f"{secrets.token_urlsafe(limits.OPERATOR_TOKEN_BYTES)}\n".encode())
            opened.flush()
            os.fsync(opened.fileno())
        os.link(fresh, file)
    finally:
        fresh.unlink(missing_ok=True)
    _log.info("operator_token_minted", file=str(file))


def _unusable(file: Path, why: str) -> StartRefused:
    return StartRefused(
        f"the operator's token in {file} cannot be used: {why}", "delete it, or set `api.auth.tokens` in the node file"
    )


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
