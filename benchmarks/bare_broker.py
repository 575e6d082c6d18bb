"""A broker as the engine would configure it, to be started without the engine."""

from __future__ import annotations

import importlib
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crewlet.backends.nats.binary import find_server
from crewlet.backends.nats.server_config import ServerSettings, server_config

__all__ = ["BareBroker", "bare_broker"]


@dataclass(frozen=True, slots=True)
class BareBroker:
    """The program, its files, and its one login."""

    program: Path
    config: Path
    ports: Path
    seed: str

    @property
    def arguments(self) -> tuple[str, str, str, str]:
        """What the floor program is called with."""
        return str(self.program), str(self.config), str(self.ports), self.seed


def bare_broker(directory: Path) -> BareBroker:
    """Write the configuration into an empty directory: the same program, bounds and syncing as in the engine."""
    nkeys: Any = importlib.import_module("nkeys")  # it has no types
    binary = find_server()
    seed: bytes = nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER)
    ports = directory / "ports"
    ports.mkdir(parents=True)
    settings = ServerSettings(
        store_dir=directory,
        ports_dir=ports,
        log_file=directory / "broker.log",
        user_public_key=nkeys.from_seed(bytearray(seed)).public_key.decode(),
        version=binary.version,
    )
    config = directory / "broker.conf"
    config.write_text(server_config(settings), encoding="utf-8")
    return BareBroker(binary.path, config, ports, seed.decode())
