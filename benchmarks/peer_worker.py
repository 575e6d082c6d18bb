"""A worker of a peer, in a process of its own: it says what it was given, and never comes to an end with it.

    python peer_worker.py PACKAGE URL NAME ACK_WAIT

``ACK_WAIT`` in seconds, empty for the broker's own. It publishes one message for each line that it is told.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from typing import Any

from nats.js.api import ConsumerConfig


async def main(package: str, url: str, name: str, ack_wait: str) -> None:
    """Work until the input ends."""
    ack_wait_s = float(ack_wait) if ack_wait else None
    send = await (_faststream if package == "faststream" else _taskiq)(url, name, ack_wait_s)
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        await send()


async def _handler(text: str) -> None:
    print(f"given {text}", flush=True)
    await asyncio.sleep(3600)


async def _faststream(url: str, name: str, ack_wait_s: float | None) -> Any:  # noqa: ANN401 - a peer's own
    nats: Any = importlib.import_module("faststream.nats")
    peer = nats.NatsBroker(url, logger=None)
    config = {} if ack_wait_s is None else {"config": ConsumerConfig(ack_wait=ack_wait_s)}
    stream = nats.JStream(name=name, subjects=[name])
    peer.subscriber(name, stream=stream, durable=name, pull_sub=nats.PullSub(), **config)(_handler)
    await peer.start()
    return lambda: peer.publish("work", name, stream=name)


async def _taskiq(url: str, name: str, ack_wait_s: float | None) -> Any:  # noqa: ANN401 - a peer's own
    taskiq_nats, api = importlib.import_module("taskiq_nats"), importlib.import_module("taskiq.api")
    config = None if ack_wait_s is None else ConsumerConfig(durable_name=name, ack_wait=ack_wait_s)
    peer = taskiq_nats.PullBasedJetStreamBroker(
        url, subject=name, stream_name=name, durable=name, consumer_config=config
    )
    task: Any = peer.task(task_name=name)(_handler)
    await peer.startup()
    _RECEIVERS.append(asyncio.get_running_loop().create_task(api.run_receiver_task(peer)))
    return lambda: task.kiq("work")


_RECEIVERS: list[asyncio.Task[None]] = []

if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
