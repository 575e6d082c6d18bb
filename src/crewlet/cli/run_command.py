"""``crewlet run``: this node, in the foreground, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from crewlet.base.clock import SystemClock
from crewlet.base.errors import ConfigError, Problem
from crewlet.base.ids import RandomIds
from crewlet.base.logging import configure_logging
from crewlet.cli.client import environment
from crewlet.config import (
    LoadedCompany,
    LoadedNode,
    LoggingConfig,
    Variables,
    load_company,
    load_node_file,
    models_without_keys,
    node_of,
    source_of,
)
from crewlet.node import CompanySource, Node, NodeSettings

if TYPE_CHECKING:
    from crewlet.api import ApiServer

__all__ = ["run"]

_NODE_FILE: Final = "crewlet.yaml"
_COMPANY_FILE: Final = "company.yaml"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_EXIT_INTERRUPTED: Final = 130


def run(options: argparse.Namespace) -> int:
    """Exit code 0 after a drain, 130 after a second Ctrl-C. Raises ``ConfigError``, ``StartRefused``."""
    variables = Variables(environment())
    configure_logging("info", "console")
    node_file = _node_file(options)
    logging = _logging(options, node_file.config.logging)
    configure_logging(logging.level, logging.format)
    company_file = Path(options.company or _COMPANY_FILE)
    company = _company(company_file, named=bool(options.company))
    models_without_keys(company.organization, variables.is_set)
    settings = NodeSettings(
        config=node_file.config,
        company=CompanySource(company.organization, company_file.resolve().parent, variables),
        environment=environment(),
        clock=SystemClock(),
        ids=RandomIds(),
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: NodeSettings) -> int:
    # The API's libraries take half a second to import; they come in beside the boot, off the loop.
    api_type = asyncio.get_running_loop().run_in_executor(None, _import_api)
    node = await Node.boot(settings)
    stop = asyncio.Event()
    _on_signals(stop)
    try:
        await _open_api(node, settings, await api_type)
        await node.start_seats()
        _greet(settings, node)
        await stop.wait()
        sys.stderr.write("crewlet: draining; running turns finish (Ctrl-C again ends at once)\n")
    finally:
        await node.drain()
    return 0


async def _open_api(node: Node, settings: NodeSettings, api: type[ApiServer]) -> None:
    if settings.config.api.port == 0:
        return
    server = api(node, settings.config.api)
    await server.start()
    node.closes(server.stop)


def _import_api() -> type[ApiServer]:
    from crewlet.api import ApiServer  # imported late: see where it is awaited

    return ApiServer


def _on_signals(stop: asyncio.Event) -> None:
    def asked() -> None:
        if stop.is_set():
            # At once means at once: the broker and the tool servers end with this process by themselves.
            os._exit(_EXIT_INTERRUPTED)
        stop.set()

    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, asked)


def _greet(settings: NodeSettings, node: Node) -> None:
    health = node.health()
    config, organization = settings.config, settings.company.organization
    models = (
        "real models"
        if health.models_are_real
        else "a script, not a real model (set ANTHROPIC_API_KEY or OPENAI_API_KEY)"
    )
    first = health.seats[0] if health.seats else "SEAT"
    lines = [
        f"{organization.name} is running: {len(health.seats)} agent seats, answered by {models}.",
        f"  API    http://{config.api.host}:{config.api.port}" if config.api.port else "  API    none (api.port is 0)",
        f"  Data   {config.data_dir}" + ("  (mail and history are IN MEMORY only)" if health.stream_in_memory else ""),
        f'  Next   {_command(settings)} ask {first} "What should we build first?"',
        f"         {_command(settings)} seats, {_command(settings)} events --follow",
        "  Stop   Ctrl-C: running turns finish. Twice: at once.",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _command(settings: NodeSettings) -> str:
    """How to call the commands from here so that they find this very node."""
    program = Path(sys.argv[0])
    name = os.path.relpath(program) if program.name == "crewlet" and not _on_path(program) else "crewlet"
    file = settings.config.file
    return name if file == Path(_NODE_FILE).resolve() else f"{name}"


def _on_path(program: Path) -> bool:
    return shutil.which("crewlet") is not None and Path(shutil.which("crewlet") or "").resolve() == program.resolve()


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
