"""The broker that belongs to this engine alone: a child process, kept alive, ended with the engine (D4)."""

from __future__ import annotations

import asyncio
import importlib
import secrets
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog

from crewlet.backends.nats.binary import ServerBinary, find_server
from crewlet.backends.nats.jetstream_types import Storage
from crewlet.backends.nats.server_config import ClusterSettings, LeafListener, LeafRemotes, ServerSettings
from crewlet.backends.nats.server_process import ServerFiles, ServerProcess
from crewlet.backends.nats.store_lock import StoreLock
from crewlet.backends.nats.store_membership import claim_store
from crewlet.base import limits
from crewlet.base.errors import StartRefused
from crewlet.base.tasks import Tasks

__all__ = ["BrokerConfig", "EmbeddedBroker"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """What the node file says about its embedded broker.

    ``store_dir`` of ``None`` keeps everything in memory. ``sync_interval_s`` of ``None`` has each write on disk before
    it is acknowledged; a number of seconds bounds what a power cut may lose. ``binary`` names another program to run.
    ``name`` is the node's, the same for ever on one store; ``cluster`` is ``None`` for a broker that is alone.
    ``leaf_listener`` has it take satellites; with ``leaf_remotes`` it is a satellite's and stores nothing itself.
    """

    store_dir: Path | None
    sync_interval_s: float | None = None
    binary: str = ""
    lock_wait_s: float = limits.STORE_DIR_LOCK_WAIT_S
    name: str = "crewlet"
    cluster: ClusterSettings | None = None
    leaf_listener: LeafListener | None = None
    leaf_remotes: LeafRemotes | None = None


class EmbeddedBroker:
    """Starts the broker, restarts it when it crashes, ends it with the engine; the login never leaves this process."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._seed, self._public_key = _new_login()
        self._overseer_seed, self._overseer_public_key = _new_login()
        self._tasks = Tasks("embedded_broker")
        self._directory: Path | None = config.store_dir
        self._lock: StoreLock | None = None
        self._server: ServerProcess | None = None
        self._port = -1
        self._restarts = 0

    @property
    def url(self) -> str:
        """Where it listens now; may change with a restart."""
        return f"nats://127.0.0.1:{self._port}"

    def urls(self) -> list[str]:
        """The same, as a connection asks for it before each dial."""
        return [self.url]

    @property
    def seed(self) -> str:
        """The private half of the one login that the broker knows; nothing may write it down."""
        return self._seed

    @property
    def overseer_seed(self) -> str:
        """As ``seed``, of a login in the cluster's own account: how members stand, and nothing that is stored."""
        return self._overseer_seed

    @property
    def pid(self) -> int:
        """The broker's process id; 0 while it does not run."""
        return 0 if self._server is None else self._server.pid

    @property
    def restarts(self) -> int:
        """How often it crashed and was started again."""
        return self._restarts

    @property
    def storage(self) -> Storage:
        """Where the streams on it are to live."""
        return "memory" if self._config.store_dir is None else "file"

    @property
    def keeps_on_disk(self) -> bool:
        """Whether what it takes is on a disk that it looks after itself."""
        return self._config.store_dir is not None and self._config.leaf_remotes is None

    @property
    def is_member(self) -> bool:
        """Whether it shares what it keeps with the other members of a cluster."""
        return self._config.cluster is not None

    async def start(self) -> None:
        """The broker listens, and this process holds its store directory. Raises ``StartRefused``."""
        binary = await asyncio.to_thread(find_server, self._config.binary)
        if self._directory is None:
            self._directory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="crewlet-broker-"))
            _log.warning("stream_in_memory", consequence="mail, records and history are lost when this engine ends")
        try:
            self._directory = self._directory.absolute()
            self._lock = StoreLock(self._directory)
            await self._lock.acquire(self._config.lock_wait_s)
            await asyncio.to_thread(self._claim, self._directory)
            settings = self._settings(binary, self._directory)
            await self._launch(binary, settings, self._directory)
        except BaseException:
            await self.stop()
            raise
        self._tasks.start("supervise", self._supervise(binary, settings, self._directory))

    async def restart(self) -> None:
        """End the program that runs; it is started again as after a crash."""
        if self._server is not None:
            await self._server.stop()

    async def last_words(self) -> list[str]:
        """The last lines that the broker said and that do not only report progress."""
        return [] if self._server is None else await self._server.last_words()

    async def said_in_this_run(self) -> list[str]:
        """Of its last words, those of the program that runs now."""
        return [line for line in await self.last_words() if line.startswith(f"[{self.pid}] ")]

    @property
    def directory(self) -> Path | None:
        """Where it keeps what it stores; ``None`` before it is started."""
        return self._directory

    async def stop(self) -> None:
        """The broker is gone and its directory free; harmless when repeated."""
        await self._tasks.close()
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()
        if self._config.store_dir is None and self._directory is not None:
            await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)
            self._directory = None

    def _claim(self, directory: Path) -> None:
        cluster = self._config.cluster
        try:
            claim_store(directory, member=self._config.name, cluster="" if cluster is None else cluster.name)
        except OSError as error:
            raise StartRefused(f"cannot write to the store directory {directory}: {error.strerror}") from error

    def _settings(self, binary: ServerBinary, directory: Path) -> ServerSettings:
        files = ServerFiles(directory)
        return ServerSettings(
            store_dir=directory,
            ports_dir=files.ports,
            log_file=files.log,
            user_public_key=self._public_key,
            version=binary.version,
            name=self._config.name,
            cluster=self._config.cluster,
            leaf_listener=self._config.leaf_listener,
            leaf_remotes=self._config.leaf_remotes,
            overseer_public_key=self._overseer_public_key,
            sync_interval_s=self._config.sync_interval_s,
        )

    async def _launch(self, binary: ServerBinary, settings: ServerSettings, directory: Path) -> None:
        assert self._lock is not None, "the directory is held before a broker runs on it"
        try:
            self._server, self._port = await ServerProcess.launch(
                binary, settings, ServerFiles(directory), inherit=[self._lock.fd]
            )
        except OSError as error:
            raise StartRefused(f"cannot start {binary.path} in {directory}: {error}") from error
        self._lock.name_holders(broker_pid=self._server.pid)
        _log.info("broker_started", pid=self._server.pid, url=self.url, store_dir=str(directory))

    async def _supervise(self, binary: ServerBinary, settings: ServerSettings, directory: Path) -> None:
        backoff_s = limits.BROKER_RESTART_BACKOFF_FIRST_S
        clock = asyncio.get_running_loop().time
        port = self._port
        while True:
            started = clock()
            if self._server is not None:
                code = await self._server.wait()
                _log.error("broker_exited", code=code, last_words=await self._server.last_words())
                self._server = None
            if clock() - started > limits.BROKER_SETTLED_AFTER_S:
                backoff_s = limits.BROKER_RESTART_BACKOFF_FIRST_S
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, limits.BROKER_RESTART_BACKOFF_MAX_S)
            try:
                await self._launch(binary, replace(settings, port=port), directory)
            except StartRefused as refusal:
                _log.error("broker_restart_failed", reason=str(refusal), retry_in_s=backoff_s)
                # The same port was tried first, so that whoever knows it finds the broker again; it may be taken.
                port = -1
                continue
            port = self._port
            self._restarts += 1
            _log.warning("broker_restarted", restarts=self._restarts, url=self.url)


def _new_login() -> tuple[str, str]:
    """A fresh seed and its public key."""
    nkeys: Any = importlib.import_module("nkeys")  # it has no types
    seed = nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER)
    pair = nkeys.from_seed(bytearray(seed))
    public_key = pair.public_key.decode()
    pair.wipe()
    return seed.decode(), public_key
