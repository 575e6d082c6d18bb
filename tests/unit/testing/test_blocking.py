"""A blocking call from the engine's code inside a running loop fails its test."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from blockbuster import BlockingError

import crewlet


async def test_sleeping_inside_a_loop_raises() -> None:
    file = Path(crewlet.__file__).with_name("as_if_ours.py")
    ours: dict[str, object] = {"sleep": time.sleep}
    # Compiled under a path of the engine's, since only the engine's code is held to this.
    exec(compile("def block(): sleep(0.001)", str(file), "exec"), ours)
    block = ours["block"]
    assert callable(block)

    with pytest.raises(BlockingError):
        block()
