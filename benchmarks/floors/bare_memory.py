"""The libraries that a node stands on, imported and nothing more. Says ``imported``; ends when its input does."""

from __future__ import annotations

import contextlib
import sys

import apsw
import fastapi
import nats
import uvloop

if __name__ == "__main__":
    print("imported", *(module.__name__ for module in (apsw, fastapi, nats, uvloop)), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()
