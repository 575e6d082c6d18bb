"""A broker of somebody else's, as it comes but for its consumer limit: processes dial it, and it tells of each."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from crewlet.backends.nats.binary import find_server
from crewlet.base import limits
from crewlet.testing.ports import free_ports
from crewlet.testing.waiting import wait_until

__all__ = ["StandingBroker", "Traffic", "standing_broker"]

_STARTS_S: Final = 15.0
_STOPS_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Messages that one client has sent and was sent, as the broker counts them."""

    sent: int
    received: int


@dataclass(frozen=True, slots=True)
class StandingBroker:
    """Where it is dialled, what it asks for, and its process."""

    port: int
    token: str
    pid: int
    _monitor: str

    @property
    def url(self) -> str:
        """What a node file names."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def url_with_token(self) -> str:
        """What a client without a setting for the token dials."""
        return f"nats://{self.token}@127.0.0.1:{self.port}"

    async def traffic(self, client: str) -> Traffic:
        """Of the client that calls itself so."""
        async with httpx.AsyncClient(trust_env=False) as http:
            answer: dict[str, Any] = (await http.get(f"{self._monitor}/connz")).json()
        found = next(each for each in answer["connections"] if each.get("name") == client)
        return Traffic(sent=found["in_msgs"], received=found["out_msgs"])


@asynccontextmanager
async def standing_broker(*, synced: bool = False) -> AsyncGenerator[StandingBroker]:
    """One on loopback, on a directory that goes with it, ended at the end.

    ``synced``: what it accepted is on the disk, as with an embedded one; else it syncs every two minutes, as it comes.
    """
    with tempfile.TemporaryDirectory(prefix="crewlet-bench-") as scratch:
        port, monitor = free_ports(2)
        token = secrets.token_hex(16)
        config = Path(scratch) / "broker.conf"
        jetstream = {"store_dir": scratch, "limits": {"default_max_consumers": limits.BROKER_MAX_CONSUMERS}}
        settings = {
            "listen": f"127.0.0.1:{port}",
            "http": f"127.0.0.1:{monitor}",
            "authorization": {"token": token},
            "max_payload": limits.BROKER_MAX_PAYLOAD_BYTES,
            "jetstream": jetstream | ({"sync_interval": "always"} if synced else {}),
        }
        await asyncio.to_thread(config.write_text, json.dumps(settings), encoding="utf-8")
        command = [str(find_server().path), "-c", str(config)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: ASYNC220
        broker = StandingBroker(port, token, process.pid, f"http://127.0.0.1:{monitor}")
        try:
            await wait_until(lambda: _answers(broker), what="the broker's start", timeout_s=_STARTS_S)
            yield broker
        finally:
            process.kill()
            await asyncio.to_thread(process.wait, _STOPS_S)


async def _answers(broker: StandingBroker) -> bool:
    try:
        _reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    except OSError:
        return False
    writer.close()
    return True
