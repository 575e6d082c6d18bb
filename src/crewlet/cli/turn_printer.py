"""Shows turns as they run, a line for each step and the model's text as it comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO, cast

from crewlet.cli.plain_text import one_line, plain

__all__ = ["TurnPrinter"]

_ARGUMENTS_MAX_CHARS: Final = 160
_RESULT_MAX_CHARS: Final = 200
_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"


class TurnPrinter:
    """Writes the events of one chain to ``out``; streamed text is continued in place, never repeated."""

    def __init__(self, out: TextIO, *, quiet: bool = False) -> None:
        self._out = out
        self._quiet = quiet
        self._colour = out.isatty()
        self._line_is_open = False
        self._shown: dict[str, tuple[str, str]] = {}
        self._said: dict[str, Callable[[Mapping[str, Any]], str]] = {
            "agent_turn_started": _turn_started,
            "agent_phase_started": _phase_started,
            "a2a_channel_opened": lambda event: f"opened a channel to {event.get('target')}",
            "a2a_message_sent": lambda event: (
                f"to {event.get('recipient')}: {_clip(event.get('content'), _RESULT_MAX_CHARS)}"
            ),
            "a2a_channel_closed": lambda _: "closed the channel",
            "provider_fallback": _fallback,
            "llm_unavailable": lambda event: f"no model answers: {event.get('error')}",
            "turn.guard_breach": lambda event: f"the guard {event.get('kind')} ended the turn: {event.get('detail')}",
            "turn_trigger_skipped": lambda event: f"skipped: {event.get('reason')}",
            "notification_skipped": lambda event: f"skipped: {event.get('reason')}",
            "agent_turn_completed": _turn_completed,
        }

    def event(self, event: Mapping[str, Any]) -> None:
        """Show one event of the chain."""
        if event.get("type") == "agent_turn_progress":
            self._progress(event)
            return
        say = self._said.get(str(event.get("type")))
        if say is not None:
            self._line(_seat_of(event), say(event))

    def note(self, text: str) -> None:
        """Show a line of our own."""
        self._line("", text)

    def end(self) -> None:
        """Finish a line of streamed text, if one is open."""
        self._break()

    def _progress(self, event: Mapping[str, Any]) -> None:
        running = cast("Mapping[str, Any] | None", event.get("running_call"))
        finished = cast("Mapping[str, Any] | None", event.get("finished_call"))
        if event.get("partial_text"):
            self._stream(event)
        if running:
            arguments = _clip(json.dumps(running.get("arguments", {}), ensure_ascii=False), _ARGUMENTS_MAX_CHARS)
            self._line(_seat_of(event), f"→ {running.get('name')} {arguments}")
        elif finished:
            result = finished.get("error") or finished.get("result")
            self._line(_seat_of(event), f"← {_clip(result, _RESULT_MAX_CHARS)}")

    def _stream(self, event: Mapping[str, Any]) -> None:
        """Show what is new of a text; each frame carries all of it so far, and a line between does not end it."""
        turn, text = str(event.get("turn_id")), plain(event["partial_text"])
        place = f"{event.get('phase')}/{event.get('iteration')}/{event.get('round_num')}"
        shown_place, shown = self._shown.get(turn, ("", ""))
        if (place, True) != (shown_place, text.startswith(shown)):
            # Another text, or the same begun anew by another model.
            self._break()
            shown = ""
        self._shown[turn] = (place, text)
        if text == shown:
            return
        if not self._line_is_open:
            self._write(f"{_seat_of(event):>10}  ")
            self._line_is_open = True
        self._write(text[len(shown) :].replace("\n", f"\n{'':12}"))

    def _line(self, seat: str, text: str) -> None:
        self._break()
        self._write(f"{seat:>10}  {one_line(text)}\n")

    def _break(self) -> None:
        if self._line_is_open:
            self._line_is_open = False
            self._write("\n")

    def _write(self, text: str) -> None:
        if self._quiet:
            return
        self._out.write(f"{_DIM}{text}{_PLAIN}" if self._colour else text)
        self._out.flush()


def _seat_of(event: Mapping[str, Any]) -> str:
    return one_line(event.get("agent_handle") or event.get("source") or "")


def _turn_started(event: Mapping[str, Any]) -> str:
    trigger = cast("Mapping[str, Any]", event.get("trigger") or {})
    if event.get("resumed"):
        return f"goes on with its turn: {_clip(trigger.get('summary'), _RESULT_MAX_CHARS)}"
    return f"begins a turn: {_clip(trigger.get('summary'), _RESULT_MAX_CHARS)}"


def _phase_started(event: Mapping[str, Any]) -> str:
    note = " (a script, not a real model)" if event.get("model") == "scripted" else ""
    return f"{event.get('phase')} ({event.get('iteration', 1)}) with {event.get('provider_key')}{note}"


def _fallback(event: Mapping[str, Any]) -> str:
    successor = event.get("to_provider_key")
    what = f"gave way to {successor}" if successor else "did not answer"
    return f"{event.get('from_provider_key')} {what}: {event.get('reason')}"


def _turn_completed(event: Mapping[str, Any]) -> str:
    if event.get("redelivered"):
        return f"broke off ({event.get('error_kind') or event.get('error')}); the trigger comes back"
    if event.get("failed"):
        return f"failed: {event.get('error') or event.get('error_kind')}"
    waiting = "; waits for a colleague" if event.get("asks") else ""
    return f"ended the turn: {event.get('decision')}, {_spent(event)}{waiting}"


def _spent(event: Mapping[str, Any]) -> str:
    """Tokens and money; a script costs none, and of a real model's reply the price may not be known."""
    tokens = int(event.get("input_tokens", 0)) + int(event.get("output_tokens", 0))
    cost = cast("float | None", event.get("cost_usd"))
    if cost is not None:
        return f"{tokens} tokens, ${cost:.4f}"
    is_free = not tokens or event.get("execute_model") == "scripted"
    return f"{tokens} tokens" if is_free else f"{tokens} tokens, cost unknown"


def _clip(text: object, limit: int) -> str:
    flat = one_line(text or "")
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"
