"""An etcd beside us, where one is on the path: its server on loopback, spoken to over its own JSON gateway."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

__all__ = ["TOLD", "EtcdClient", "etcd_client", "is_installed"]

TOLD: Final = "etcd 3.4: a lease granted, and a key put under it in a transaction, over its JSON gateway"
_PROGRAM: Final = os.environ.get("CREWLET_BENCH_ETCD", "etcd")
_STARTS_S: Final = 15.0
_REQUEST_S: Final = 5.0


def is_installed() -> bool:
    """Whether its server can be started here (Debian: etcd-server; CREWLET_BENCH_ETCD names another program)."""
    return shutil.which(_PROGRAM) is not None


class EtcdClient:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def claim(self, key: str, ttl_s: int, value: bytes) -> bool:
        """A lease of its own, and the key put under it where nobody has it: whether it was put."""
        lease = (await self._ask("lease/grant", {"TTL": str(ttl_s)}))["ID"]
        name = base64.b64encode(key.encode()).decode()
        put = {"key": name, "value": base64.b64encode(value).decode(), "lease": lease}
        answer = await self._ask(
            "kv/txn",
            {
                "compare": [{"key": name, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}],
                "success": [{"requestPut": put}],
            },
        )
        return bool(answer.get("succeeded"))

    async def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()

    async def _ask(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        payload = json.dumps(body).encode()
        head = f"POST /v3/{what} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {len(payload)}\r\n\r\n"
        writer.write(head.encode() + payload)
        async with asyncio.timeout(_REQUEST_S):
            answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(answer.partition("content-length:")[2].partition("\r")[0])
            return json.loads(await reader.readexactly(length))


@asynccontextmanager
async def etcd_client() -> AsyncGenerator[EtcdClient]:
    """A client of a server of its own, on a directory that goes with it."""
    client_port, peer_port = _free_ports(2)
    urls = [f"http://127.0.0.1:{port}" for port in (client_port, peer_port)]
    with tempfile.TemporaryDirectory(prefix="crewlet-etcd-") as directory:
        process = _started(directory, *urls)
        client = EtcdClient(client_port)
        try:
            await _wait_until_it_serves(client)
            yield client
        finally:
            await client.close()
            process.terminate()
            await asyncio.to_thread(process.wait, _REQUEST_S)


def _started(directory: str, client_url: str, peer_url: str) -> subprocess.Popen[bytes]:
    arguments = [
        *("--data-dir", directory, "--log-level", "error"),
        *("--listen-client-urls", client_url, "--advertise-client-urls", client_url),
        *("--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url),
        *("--initial-cluster", f"default={peer_url}"),
    ]
    return subprocess.Popen([_PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def _wait_until_it_serves(client: EtcdClient) -> None:
    async with asyncio.timeout(_STARTS_S):
        while True:
            try:
                await client.claim("ready", 60, b"")
            except (OSError, EOFError, KeyError, ValueError):
                await client.close()
                await asyncio.sleep(0.1)
            else:
                return


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
