"""The text of the embedded broker's configuration file. It holds no secret: only the public half of the one login."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crewlet.base import limits

__all__ = ["ServerSettings", "server_config"]

_ANY_PORT: Final = -1
_DEFAULT_MAX_CONSUMERS_SINCE: Final = (2, 15)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What differs from one broker to the next. ``sync_interval_s`` of ``None``: each write is on disk before its ack.

    ``port`` of -1 lets the operating system choose; the broker writes what it got into ``ports_dir``.
    """

    store_dir: Path
    ports_dir: Path
    log_file: Path
    user_public_key: str
    version: tuple[int, int]
    port: int = _ANY_PORT
    sync_interval_s: float | None = None


def server_config(settings: ServerSettings) -> str:
    """The configuration: loopback, one login, limits raised, and nothing acknowledged that is not on disk."""
    sync = "always" if settings.sync_interval_s is None else _quoted(f"{round(settings.sync_interval_s * 1000)}ms")
    # Since 2.15 a stream that sets no limit of its own stops at 1,000 consumers, in silence for who publishes to it.
    raised = f"default_max_consumers: {limits.BROKER_MAX_CONSUMERS}"
    return f"""\
server_name: "crewlet"
listen: "127.0.0.1:{settings.port}"
ports_file_dir: {_quoted(settings.ports_dir)}
log_file: {_quoted(settings.log_file)}
logfile_size_limit: {limits.BROKER_LOG_MAX_BYTES}
logfile_max_num: 2
max_payload: {limits.BROKER_MAX_PAYLOAD_BYTES}
max_pending: {limits.BROKER_MAX_PENDING_BYTES}
authorization {{ users: [ {{ nkey: {settings.user_public_key} }} ] }}
jetstream {{
  store_dir: {_quoted(settings.store_dir)}
  sync_interval: {sync}
  limits {{ {raised if settings.version >= _DEFAULT_MAX_CONSUMERS_SINCE else ""} }}
}}
"""


def _quoted(value: object) -> str:
    return json.dumps(str(value), ensure_ascii=False)
