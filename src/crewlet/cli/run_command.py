"""``crewlet run``: this node, in the foreground, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from crewlet.api import ApiConfig as ServerConfig
from crewlet.api import ApiServer, ApiToken
from crewlet.base.clock import SystemClock
from crewlet.base.collecting import collect_seldom
from crewlet.base.errors import ConfigError, Problem
from crewlet.base.ids import RandomIds
from crewlet.base.logging import configure_logging
from crewlet.base.standard_streams import LastingStream
from crewlet.cli.client import environment
from crewlet.cli.own_name import own_name
from crewlet.cli.suspension import Suspension
from crewlet.config import (
    ApiConfig,
    LoadedCompany,
    LoadedNode,
    LoggingConfig,
    Variables,
    load_company,
    load_node_file,
    node_of,
    source_of,
)
from crewlet.node import CompanySource, Node, NodeSettings
from crewlet.seats import Watchdog

__all__ = ["run"]

_NODE_FILE: Final = "crewlet.yaml"
_COMPANY_FILE: Final = "company.yaml"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_EXIT_INTERRUPTED: Final = 130
_ERR: Final = LastingStream(sys.stderr)


def run(options: argparse.Namespace) -> int:
    """Exit code 0 after a drain, 130 where a start was given up and after a second Ctrl-C.

    Raises ``ConfigError``, ``StartRefused``.
    """
    variables = Variables(environment())
    configure_logging("info", "console")
    node_file = _node_file(options)
    logging = _logging(options, node_file.config.logging)
    configure_logging(logging.level, logging.format)
    company_file = Path(options.company or _COMPANY_FILE)
    company = _company(company_file, named=bool(options.company))
    suspension = Suspension()
    settings = NodeSettings(
        config=node_file.config,
        company=CompanySource(company.organization, company_file.resolve().parent, variables, company.text),
        environment=environment(),
        clock=SystemClock(),
        ids=RandomIds(),
        watchdog=lambda threshold_s: suspension.watched_by(Watchdog(SystemClock(), threshold_s=threshold_s)),
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(settings, suspension))


async def _serve(settings: NodeSettings, suspension: Suspension) -> int:
    # The web framework takes half a second to import; it comes in beside the boot, off the loop.
    warmed = asyncio.get_running_loop().run_in_executor(None, importlib.import_module, "crewlet.api.app")
    stop = _Stop()
    suspension.listen()
    try:
        async with AsyncExitStack() as stack:
            node = await Node.boot(settings)
            stack.push_async_callback(node.drain)
            api = _api_of(node, settings.config.api)
            if api is not None:
                node.closes(api.stop)
                await api.bind()
            await node.start_seats()
            await warmed
            if api is not None:
                await api.start()
            _greet(settings, node)
            collect_seldom()
            await stop.wait()
            _ERR.write("crewlet: draining; running turns finish (Ctrl-C again ends at once)\n")
    except asyncio.CancelledError:
        if not stop.gave_up_starting():
            raise
        _ERR.write("crewlet: stopped before it had started\n")
        return _EXIT_INTERRUPTED
    return 0


class _Stop:
    """What Ctrl-C and SIGTERM mean: a start is given up, a running node drains, and said twice, the end is at once."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._starting = asyncio.current_task()
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)

    async def wait(self) -> None:
        """Return once somebody asks; from now on the node counts as started."""
        self._starting = None
        await self._asked.wait()

    def gave_up_starting(self) -> bool:
        """Whether it was a signal that cancelled the start; if so, the cancellation ends here."""
        task = asyncio.current_task()
        if not self._asked.is_set() or task is None:
            return False
        task.uncancel()
        return True

    def _on_signal(self) -> None:
        if self._asked.is_set():
            # At once means at once: the broker and the tool servers end with this process by themselves.
            os._exit(_EXIT_INTERRUPTED)
        self._asked.set()
        if self._starting is not None:
            self._starting.cancel()


def _api_of(node: Node, config: ApiConfig) -> ApiServer | None:
    if config.port == 0:
        return None
    tokens = tuple(ApiToken(token.id, token.token) for token in config.tokens)
    return ApiServer(
        node,
        ServerConfig(
            host=config.host,
            port=config.port,
            token_file=config.token_file,
            tokens=tokens,
            allow_anonymous_read=config.allow_anonymous_read,
        ),
    )


def _greet(settings: NodeSettings, node: Node) -> None:
    health = node.health()
    config = settings.config
    models = (
        "real models"
        if health.models_are_real
        else "a script, not a real model (set ANTHROPIC_API_KEY or OPENAI_API_KEY)"
    )
    program, options = _command(settings)
    agents = [seat.handle for seat in node.seats() if seat.kind == "agent"]
    first = agents[0] if agents else "SEAT"
    lines = [
        f"{health.company} is running: {len(agents)} agent seats, answered by {models}.",
        f"  API    http://{config.api.host}:{config.api.port}" if config.api.port else "  API    none (api.port is 0)",
        f"  Data   {config.data_dir}" + ("  (mail and history are IN MEMORY only)" if health.stream_in_memory else ""),
        f'  Next   {program} ask{options} {first} "What should we build first?"',
        f"         {program} seats{options}, {program} events{options} --follow",
        "  Stop   Ctrl-C: running turns finish. Twice: at once.",
    ]
    out = LastingStream(sys.stdout)
    out.write("\n".join(lines) + "\n")
    out.flush()


def _command(settings: NodeSettings) -> tuple[str, str]:
    """How to call the commands from here so that they find this very node: the program, and the options it needs."""
    file = settings.config.file
    return own_name(), "" if file == Path(_NODE_FILE).resolve() else f" -c {os.path.relpath(file)}"


def _node_file(options: argparse.Namespace) -> LoadedNode:
    path = Path(options.config or _NODE_FILE)
    if not options.config and not path.is_file():
        # Nothing named and nothing there: the defaults run a node from this folder.
        return node_of(source_of("{}", str(path)), environment())
    return load_node_file(path, environment())


def _company(path: Path, *, named: bool) -> LoadedCompany:
    if not path.is_file() and not named:
        raise ConfigError(
            Problem(str(path), "no company document here", "give --company, or begin with `crewlet init DIR`")
        )
    return load_company(path)


def _logging(options: argparse.Namespace, configured: LoggingConfig) -> LoggingConfig:
    return replace(
        configured, level=options.log_level or configured.level, format=options.log_format or configured.format
    )


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
