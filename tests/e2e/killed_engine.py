"""The real ``crewlet``, which ends itself with SIGKILL before the Nth thing that it does.

    python killed_engine.py LOG ARMED_BY NTH COMMAND OPTIONS...

Things are counted from the moment that ``ARMED_BY`` names: ``message`` (an operator's message has come in) or ``start``
(at once). Counted are what goes to the broker, what goes to the database, what is asked of the model, and what is asked
of a tool server; ``NTH`` of 0 never comes. ``LOG`` gets a line before and one after each: ``3 publish SUBJECT`` and
``= publish SUBJECT``, so that whoever reads it later knows what had been done for certain.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable

from crewlet.backends.nats.connection import Connection
from crewlet.cli import main
from crewlet.llm.scripted_model import ScriptedModel
from crewlet.node import Node
from crewlet.store import Database
from crewlet.tools.server import ToolServer

Method = Callable[..., Awaitable[object]]
Around = Callable[[Method], Method]


class Killer:
    def __init__(self, log: int, nth: int, *, armed: bool) -> None:
        self._log = log
        self._nth = nth
        self._count = 0
        self.armed = armed

    def before(self, what: str) -> None:
        if not self.armed:
            return
        self._count += 1
        self._note(f"{self._count} {what}")
        if self._count == self._nth:
            os.kill(os.getpid(), signal.SIGKILL)

    def after(self, what: str) -> None:
        if self.armed:
            self._note(f"= {what}")

    def _note(self, line: str) -> None:
        os.write(self._log, f"{line}\n".encode())


def counted(killer: Killer, kind: str, *, named: bool = False) -> Around:
    """Each call is counted; ``named``: its first argument says what it is about."""

    def around(method: Method) -> Method:
        async def call(self: object, *args: object, **kwargs: object) -> object:
            what = f"{kind} {args[0]}" if named else kind
            killer.before(what)
            result = await method(self, *args, **kwargs)
            killer.after(what)
            return result

        return call

    return around


def answered(killer: Killer) -> Around:
    """A request is counted as what it publishes; only once it is answered is it known to have arrived."""

    def around(method: Method) -> Method:
        async def call(self: object, subject: str, *args: object, **kwargs: object) -> object:
            killer.before(f"publish {subject}")
            answer = await method(self, subject, *args, **kwargs)
            killer.after(f"publish {subject}")
            killer.after(f"request {subject}")
            return answer

        return call

    return around


def arming(killer: Killer) -> Around:
    def around(method: Method) -> Method:
        async def call(self: object, *args: object, **kwargs: object) -> object:
            killer.armed = True
            return await method(self, *args, **kwargs)

        return call

    return around


def plant(killer: Killer) -> None:
    wrapped: list[tuple[type, str, Around]] = [
        (Connection, "publish", counted(killer, "publish", named=True)),
        (Connection, "request", answered(killer)),
        (Database, "write", counted(killer, "write a row")),
        (ScriptedModel, "complete", counted(killer, "ask the model")),
        (ToolServer, "call", counted(killer, "call the tool", named=True)),
        (Node, "send_message", arming(killer)),
    ]
    for owner, name, around in wrapped:
        setattr(owner, name, around(getattr(owner, name)))


if __name__ == "__main__":
    log, armed_by, nth, *command = sys.argv[1:]
    plant(Killer(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), int(nth), armed=armed_by == "start"))
    sys.argv = ["crewlet", *command]
    sys.exit(main(command))
