"""What the API runs with: where it listens, who may use it, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from crewlet.base import limits
from crewlet.base.errors import ConfigError, Problem

__all__ = ["ApiConfig", "ApiLimits", "ApiToken"]


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A bearer token and whom it speaks for."""

    id: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiLimits:
    """The API's clocks and bounds; the defaults are what ships, tests scale them down."""

    connections_max: int = limits.API_CONNECTIONS_MAX
    headers_timeout_s: float = limits.API_HEADERS_TIMEOUT_S
    body_timeout_s: float = limits.API_BODY_TIMEOUT_S
    body_max_bytes: int = limits.REQUEST_BODY_MAX_BYTES
    keep_alive_s: int = limits.API_KEEP_ALIVE_S
    answer_timeout_s: float = limits.API_ANSWER_TIMEOUT_S
    write_stalled_max_s: float = limits.API_WRITE_STALLED_MAX_S
    unread_body_wait_s: float = limits.API_UNREAD_BODY_WAIT_S
    stream_clients_max: int = limits.STREAM_CLIENTS_MAX
    stream_queue_max: int = limits.STREAM_CLIENT_QUEUE_MAX
    stream_queue_max_bytes: int = limits.STREAM_CLIENT_QUEUE_MAX_BYTES
    stream_health_every_s: float = limits.STREAM_HEALTH_EVERY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    """Where the API listens and whom it lets in. ``port`` 0 takes a free one.

    Without ``tokens`` the address must be loopback, and a first token is minted into ``token_file``. ``hosts`` are
    further names under which the node is reached, such as a proxy's. ``disabled`` lets everybody in, for development.
    """

    host: str
    port: int
    token_file: Path
    tokens: tuple[ApiToken, ...] = ()
    allow_anonymous_read: bool = False
    disabled: bool = False
    hosts: tuple[str, ...] = ()
    limits: ApiLimits = ApiLimits()

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:  # noqa: PLR2004 - the last port there is
            raise ConfigError(Problem("api.port", f"{self.port} is no port", "choose one from 1 to 65535"))
        for index, token in enumerate(self.tokens):
            if not token.id or not token.token:
                raise ConfigError(Problem(f"api.auth.tokens[{index}]", "id and token may not be empty", "fill both"))
