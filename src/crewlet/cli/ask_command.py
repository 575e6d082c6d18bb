"""``crewlet ask``: write to a seat, watch the turns that follow, print the answer."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

from crewlet.base import limits
from crewlet.base.errors import ConfigError, CrewletError, Problem
from crewlet.base.tasks import Tasks
from crewlet.cli.client import ApiClient, ApiRefused, NodeUnreachable, environment, segment
from crewlet.cli.own_name import own_name
from crewlet.cli.plain_text import one_line, plain
from crewlet.cli.standard_input_output import read_input
from crewlet.cli.turn_printer import TurnPrinter
from crewlet.cli.whereabouts import find_node

__all__ = ["ask"]

_POLL_S: Final = 2.0
_POLL_SOON_S: Final = 0.05
_FINAL: Final = frozenset({"answered", "failed", "skipped"})
_CHANGES_THE_MESSAGE: Final = frozenset(
    {"agent_turn_started", "agent_turn_completed", "turn_trigger_skipped", "notification_skipped"}
)
_EXIT_FAILED: Final = 1
_EXIT_TIMEOUT: Final = 3
_SERVER_TROUBLE: Final = 500


def ask(options: argparse.Namespace) -> int:
    """Exit code 0 when answered, 1 when the turn failed or nothing was to be done, 3 when nothing came in time."""
    text = _message(options.text)
    if not text.strip():
        raise ConfigError(Problem("text", "the message is empty", "say what the seat should do"))
    if not options.timeout > 0:  # not a number is no time either
        raise ConfigError(Problem("--timeout", f"{options.timeout:g} is no time to wait", "give seconds above 0"))
    return asyncio.run(_Ask(options, text).run())


def _message(written: str) -> str:
    """What to send: the argument, or standard input for ``-``. Raises ``ConfigError`` where it cannot be sent."""
    # The bytes of an argument, whatever encoding this shell claims to use.
    raw = read_input(limits.REQUEST_BODY_MAX_BYTES) if written == "-" else os.fsencode(written)
    if len(raw) > limits.REQUEST_BODY_MAX_BYTES:
        what = f"the message is larger than {limits.REQUEST_BODY_MAX_BYTES} bytes"
        raise ConfigError(Problem("text", what, "name a file that the seat's tools can read instead"))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ConfigError(Problem("text", "the message is no UTF-8 text", "convert it first")) from None


class _Ask:
    def __init__(self, options: argparse.Namespace, text: str) -> None:
        self._options = options
        self._text = text
        self._printer = TurnPrinter(sys.stderr, quiet=options.quiet or options.json)
        self._api = ApiClient(find_node(options.url, options.config, environment()))
        self._changed = asyncio.Event()
        self._trace_id = ""
        self._early: list[dict[str, Any]] = []
        self._last: dict[str, Any] = {}

    async def run(self) -> int:
        async with self._api, AsyncExitStack() as stack:
            # Watched before anything is sent, so that the first step is seen too; a refusal ends the command here.
            frames = await stack.enter_async_context(self._api.stream())
            tasks = Tasks("ask")
            stack.push_async_callback(tasks.close)
            tasks.start("watch", self._watch(frames))
            try:
                async with asyncio.timeout(self._options.timeout):
                    return self._conclude(await self._until_final(await self._send()))
            except TimeoutError:
                return self._gave_up()

    async def _send(self) -> str:
        sent = await self._api.post(f"/seats/{segment(self._options.seat)}/messages", {"text": self._text})
        self._trace_id = str(sent["trace_id"])
        early, self._early = self._early, []
        for event in early:
            self._show(event)
        return str(sent["id"])

    async def _until_final(self, message_id: str) -> dict[str, Any]:
        away, waits_for, pause_s = "", "", _POLL_S
        while True:
            self._changed.clear()
            try:
                self._last = await self._api.get(f"/messages/{segment(message_id)}")
                away = ""
            except (NodeUnreachable, ApiRefused) as gone:
                # A node that restarts keeps the message; it is asked again until the time is up.
                if isinstance(gone, ApiRefused) and gone.status < _SERVER_TROUBLE:
                    raise
                if str(gone) != away:
                    self._printer.note(away := str(gone))
            if self._last.get("state") in _FINAL:
                return self._last
            if self._last.get("state") == "waiting" and self._last.get("reason", "") != waits_for:
                waits_for = str(self._last["reason"])
                self._printer.note(f"waits: {waits_for}" if waits_for else "goes on")
            try:
                async with asyncio.timeout(pause_s):
                    await self._changed.wait()
            except TimeoutError:
                pause_s = min(2 * pause_s, _POLL_S)
            else:
                # The stream may tell of a step before the node has stored it.
                pause_s = _POLL_SOON_S

    async def _watch(self, frames: AsyncIterator[dict[str, Any]]) -> None:
        """Show the live frames of our trace; a lost stream is taken up again, a poll covers what it missed."""
        await self._show_all(frames)
        while True:
            await asyncio.sleep(_POLL_S)
            with suppress(CrewletError):
                async with self._api.stream() as again:
                    await self._show_all(again)

    async def _show_all(self, frames: AsyncIterator[dict[str, Any]]) -> None:
        with suppress(NodeUnreachable):
            async for frame in frames:
                if frame.get("kind") == "event":
                    self._show(frame["data"])

    def _show(self, event: dict[str, Any]) -> None:
        if not self._trace_id:
            self._early.append(event)
        elif event.get("trace_id") == self._trace_id:
            self._printer.event(event)
            if event.get("type") in _CHANGES_THE_MESSAGE:
                self._changed.set()

    def _conclude(self, message: dict[str, Any]) -> int:
        self._printer.end()
        answered = message["state"] == "answered"
        if self._options.json:
            sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
        elif answered or message.get("answer"):
            sys.stdout.write(f"{plain(message.get('answer', ''))}\n")
        if not answered:
            reason = one_line(message["reason"])
            sys.stderr.write(f"crewlet: {self._options.seat} did not answer: {message['state']}: {reason}\n")
        return 0 if answered else _EXIT_FAILED

    def _gave_up(self) -> int:
        self._printer.end()
        if self._options.json and self._last:
            sys.stdout.write(json.dumps(self._last, ensure_ascii=False) + "\n")
        reason = one_line(self._last.get("reason") or f"the message is {self._last.get('state', 'on its way')}")
        lines = [f"crewlet: no answer within {self._options.timeout:g} s: {reason}"]
        if self._last.get("id"):
            lines.append(f"         the work goes on; `{self._how_to_ask(self._last['id'])}` says how it stands")
        sys.stderr.writelines(f"{line}\n" for line in lines)
        return _EXIT_TIMEOUT

    def _how_to_ask(self, message_id: str) -> str:
        given = (("-c", self._options.config), ("--url", self._options.url))
        options = [word for option, value in given if value for word in (option, value)]
        return f"{own_name()} {shlex.join(['message', message_id, *options])}"
