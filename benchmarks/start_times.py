"""How long starting takes: a command, a broker, a node to its first seat, the example company with its tool server."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvloop

from benchmarks.bare_broker import bare_broker
from benchmarks.companies import write_company, write_example
from benchmarks.figures import Figure, Measurement, Sizes, figure, median
from benchmarks.floors.bare_start import answering
from benchmarks.processes import Watched, engine, fields, run_time_s
from crewlet.backends.nats import BrokerConfig, EmbeddedBroker, JetStream, connect
from crewlet.testing.engine_files import EngineFiles

__all__ = ["MEASUREMENTS"]

_HELP_BOUND_S = 0.3
_BROKER_BOUND_S = 0.5
_FIRST_SEAT_BOUND_S = 1.5
_EXAMPLE_BOUND_S = 4.0
_FLOORS = Path(__file__).with_name("floors")
_BARE_BROKER = "the same broker and nats-py, to the first answered request"
_BARE_START = "python, uvloop, nats-py and the same broker, to the first answered request"


def _help(sizes: Sizes) -> Sequence[Figure]:
    ours: list[float] = []
    bare: list[float] = []
    for number in range(-sizes.warm_up, sizes.commands):
        bare_s = run_time_s([sys.executable, "-c", "pass"])
        our_s = run_time_s([sys.executable, "-m", "crewlet", "--help"])
        if number >= 0:
            bare.append(bare_s)
            ours.append(our_s)
    return [
        figure("help_s", median(ours), "s", floor=median(bare), floor_name="python -c pass", bound=_HELP_BOUND_S),
    ]


def _broker(sizes: Sizes) -> Sequence[Figure]:
    ours: list[float] = []
    bare: list[float] = []
    for number in range(-sizes.warm_up, sizes.starts):
        with _scratch() as directory:
            bare_s = uvloop.run(_bare_broker_start_s(directory / "bare"))
            our_s = uvloop.run(_broker_start_s(directory / "ours"))
        if number >= 0:
            bare.append(bare_s)
            ours.append(our_s)
    return [
        figure("broker_start_s", median(ours), "s", floor=median(bare), floor_name=_BARE_BROKER, bound=_BROKER_BOUND_S)
    ]


def _node(sizes: Sizes) -> Sequence[Figure]:
    """A first start makes every stream and mailbox, a further one finds them and takes over what was left."""
    first: list[float] = []
    again: list[float] = []
    bare: list[float] = []
    for number in range(sizes.starts):
        with _scratch() as directory:
            files = write_company(directory / "node", seats=sizes.seats)
            if number == 0 and sizes.warm_up:
                _first_seat_s(write_company(directory / "warm", seats=sizes.seats))
            bare.append(_bare_start_s(directory / "bare"))
            first.append(_first_seat_s(files))
            again.append(_first_seat_s(files))
    floor = median(bare)
    return [
        figure(name, median(times), "s", floor=floor, floor_name=_BARE_START, bound=_FIRST_SEAT_BOUND_S)
        for name, times in (("run_to_first_seat_s", first), ("run_again_to_first_seat_s", again))
    ]


def _example(sizes: Sizes) -> Sequence[Figure]:
    seats: list[float] = []
    tools: list[float] = []
    bare: list[float] = []
    for number in range(sizes.example_starts):
        with _scratch() as directory:
            if number == 0 and sizes.warm_up:
                _handshake_s(write_example(directory / "warm").directory)
            bare.append(_handshake_s(write_example(directory / "bare").directory))
            with engine(write_example(directory / "example")) as process:
                seats.append(process.line("seat_attached")[0])
                tools.append(float(fields(process.line("mcp_server_started")[1])["seconds"]))
    return [
        figure("example_run_to_first_seat_s", median(seats), "s", bound=_EXAMPLE_BOUND_S),
        figure(
            "example_tool_servers_start_s",
            median(tools),
            "s",
            floor=median(bare),
            floor_name="the same tool server, started and greeted over bare pipes",
        ),
    ]


def _first_seat_s(files: EngineFiles) -> float:
    with engine(files) as process:
        took_s, _line = process.line("seat_attached")
        process.line("engine_started")
        return took_s


def _bare_start_s(directory: Path) -> float:
    command = [sys.executable, str(_FLOORS / "bare_start.py"), *bare_broker(directory).arguments]
    with Watched(command, cwd=directory) as process:
        return process.line("answered")[0]


async def _bare_broker_start_s(directory: Path) -> float:
    broker = bare_broker(directory)
    began = time.perf_counter()
    async with answering(*broker.arguments):
        return time.perf_counter() - began


async def _broker_start_s(directory: Path) -> float:
    broker = EmbeddedBroker(BrokerConfig(store_dir=directory))
    began = time.perf_counter()
    try:
        await broker.start()
        wire = await connect(broker.urls, seed=broker.seed, name="measured")
        await JetStream(wire).stream_info("absent")
        took_s = time.perf_counter() - began
        await wire.close()
    finally:
        await broker.stop()
    return took_s


def _handshake_s(directory: Path) -> float:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "floor", "version": "0"},
        },
    }
    with Watched([sys.executable, "notes_board.py"], cwd=directory) as process:
        process.tell(json.dumps(hello) + "\n")
        return process.line('"result"')[0]


@contextmanager
def _scratch() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="crewlet-bench-") as directory:
        yield Path(directory)


MEASUREMENTS = (
    Measurement("help", {"help_s": "`crewlet --help`"}, _help),
    Measurement("broker", {"broker_start_s": "the embedded broker's start, until it answers"}, _broker),
    Measurement(
        "start",
        {
            "run_to_first_seat_s": "`crewlet run` to the first seat at work, 10 seats, new data directory",
            "run_again_to_first_seat_s": "the same on a data directory in use",
        },
        _node,
    ),
    Measurement(
        "example",
        {
            "example_run_to_first_seat_s": "the example company to its first seat at work, tool server included",
            "example_tool_servers_start_s": "of that, its tool server's start",
        },
        _example,
    ),
)
