"""A tool server without any SDK, in the older dialect of the protocol, whose tools misbehave on demand."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TOOLS = ("echo", "env", "fails", "image", "mixed", "structured", "hangs", "sleeps", "crashes", "refused", "noise")
cancelled: list[object] = []
wire = threading.Lock()


def send(message: Json) -> None:
    with wire:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def content(*texts: str) -> list[Json]:
    return [{"type": "text", "text": each} for each in texts]


def call(name: str, arguments: Json) -> Json:
    image: Json = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    result: Json = {"content": []}
    match name:
        case "echo":
            result["content"] = content(arguments.get("text", ""))
        case "env":
            result["content"] = content(json.dumps(dict(os.environ)))
        case "fails":
            result = {"content": content("the disk is full"), "isError": True}
        case "image":
            result["content"] = [image]
        case "mixed":
            result["content"] = [*content("one", "two"), image]
        case "structured":
            result["structuredContent"] = {"answer": 42}
        case "sleeps":
            time.sleep(arguments["seconds"])
        case "noise":
            sys.stderr.write("a line on stderr\n")
            sys.stdout.write("not a message\n")
            result["content"] = content(f"cancelled: {len(cancelled)}")
        case _:
            os._exit(9)
    return result


def answer(message: Json) -> None:
    params: Json = message.get("params", {})
    match message["method"]:
        case "initialize":
            result: Json = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
        case "tools/list":
            # Two pages, so that a client must turn one.
            names = TOOLS[5:] if params.get("cursor") else TOOLS[:5]
            tools: list[Json] = [
                {"name": name, "description": name, "inputSchema": {"type": "object"}} for name in names
            ]
            tools[0]["annotations"] = {"readOnlyHint": True, "openWorldHint": False}
            result = {"tools": tools} if params.get("cursor") else {"tools": tools, "nextCursor": "2"}
        case "tools/call" if params["name"] == "hangs":
            return
        case "tools/call" if params["name"] == "refused":
            send({"id": message["id"], "error": {"code": -32602, "message": "no such thing"}})
            return
        case "tools/call":
            result = call(params["name"], params.get("arguments") or {})
        case _:
            send({"id": message["id"], "error": {"code": -32601, "message": "unknown method"}})
            return
    send({"id": message["id"], "result": result})


def main(mode: str) -> None:
    if mode == "exits" and not (len(sys.argv) > 2 and Path(sys.argv[2]).exists()):
        sys.stderr.write("the token is missing\n")
        sys.exit(3)
    for line in sys.stdin:
        message = json.loads(line)
        if mode == "deaf":
            continue
        if message["method"] == "notifications/cancelled":
            cancelled.append(message)
        elif "id" in message:
            threading.Thread(target=answer, args=(message,), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
