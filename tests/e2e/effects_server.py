"""A tool server that writes down what it is told to do: one line a call, in a file that outlives every engine.

    python effects_server.py FILE [MUTE]

Where it runs (the node's folder) says which node called; times are on the clock that counts sleep. In the folder MUTE
it does what it is told and never says so.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TOOL: Json = {
    "name": "record",
    "description": "Do something in the world.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "annotations": {"readOnlyHint": False, "openWorldHint": True},
}


def answer(file: int, message: Json, mute: str) -> Json:
    params: Json = message.get("params") or {}
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "effects", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
            line = {"text": params["arguments"]["text"], "node": Path.cwd().name, "at_s": at_s}
            os.write(file, f"{json.dumps(line)}\n".encode())
            if Path.cwd().name == mute:
                signal.pause()
            return {"content": [{"type": "text", "text": "done"}]}
        case _:
            return {}


def main(path: str, mute: str = "") -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for line in sys.stdin:
        message: Json = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(file, message, mute)}
            sys.stdout.write(f"{json.dumps(reply)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
