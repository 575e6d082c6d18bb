"""The record store as a model: what any backend must tell of each step of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from crewlet import topics
from crewlet.testing.contracts.record_program import Program, Step, Told

__all__ = ["RecordModel"]

_NEVER = 10**6


@dataclass(slots=True)
class _View:
    """What a watch has not told yet, by key; ``None`` once it is over."""

    changes: dict[str, Told] | None = field(default_factory=dict[str, Told])


@dataclass(slots=True)
class RecordModel:
    """Two clients' bucket: live values by key, keys with a marker, and a counter."""

    live: dict[str, tuple[bytes, int]] = field(default_factory=dict[str, tuple[bytes, int]])
    markers: dict[str, int] = field(default_factory=dict[str, int])
    revisions: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    last: int = 0
    cut: set[int] = field(default_factory=set[int])
    views: dict[int, _View] = field(default_factory=dict[int, _View])
    withheld: dict[int, list[Callable[[], Told]]] = field(default_factory=dict[int, list[Callable[[], Told]]])

    def run(self, program: Program) -> list[Told]:
        """What is told of each step."""
        return [self.take(step) for step in program]

    def take(self, step: Step) -> Told:
        """What is told of this one."""
        if step.verb in ("cut", "mend", "deliver", "age"):
            told = self._happen(step)
        elif step.client in self.cut:
            told = () if step.verb == "read" and step.client not in self.views else ("unavailable",)
        elif step.verb == "create":
            told = self._created(step.key, step.value)
        elif step.verb.endswith(("update", "delete")):
            told = self._spoiled(step)
        else:
            told = self._looked(step)
        return told

    def _looked(self, step: Step) -> Told:
        match step.verb:
            case "get":
                told = self._shown(step.key)
            case "list":
                told = tuple(self._shown(key) for key in sorted(self.live) if topics.matches(step.key, key))
            case "last":
                told = (max([*(revision for _, revision in self.live.values()), *self.markers.values()], default=0),)
            case "watch":
                self.views[step.client] = _View()
                told = tuple(self._shown(key) for key in sorted(self.live))
            case "read":
                told = self._read(step.client)
            case _:
                told = (len(self.markers) if step.verb == "sweep" else 0,)
                self.markers = {} if step.verb == "sweep" else self.markers
        return told

    def _created(self, key: str, value: bytes) -> Told:
        return ("conflict", self.live[key][1]) if key in self.live else self._written(key, value)

    def _spoiled(self, step: Step) -> Told:
        known = self.revisions.get(step.key, [])
        expected = known[-1 - step.back] if step.back < len(known) else _NEVER

        def write() -> Told:
            return self._write(step, expected)

        if step.verb.startswith("withhold"):
            self.withheld.setdefault(step.client, []).append(write)
            gone = step.verb.endswith("delete") and step.key not in self.live
            return ("removed",) if gone else ("unavailable",)
        told = write()
        return ("unavailable",) if step.verb.startswith("lose") and told[0] == "conflict" else told

    def _write(self, step: Step, expected: int) -> Told:
        is_update = step.verb.endswith("update")
        if step.key not in self.live and not is_update:
            return ("removed",)
        current = self.live.get(step.key, (b"", 0))[1]
        if current != expected:
            return ("conflict", current)
        return self._written(step.key, step.value) if is_update else self._removed(step.key)

    def _written(self, key: str, value: bytes) -> Told:
        self.last += 1
        self.live[key] = (value, self.last)
        self.markers.pop(key, None)
        self.revisions.setdefault(key, []).append(self.last)
        self._tell(key, value)
        return self._shown(key)

    def _removed(self, key: str) -> Told:
        self.last += 1
        del self.live[key]
        self.markers[key] = self.last
        self._tell(key, None)
        return ("removed",)

    def _tell(self, key: str, value: bytes | None) -> None:
        for view in self.views.values():
            if view.changes is not None:
                view.changes.pop(key, None)
                view.changes[key] = (key, value, self.last)

    def _read(self, client: int) -> Told:
        view = self.views.get(client)
        if view is None:
            return ()
        if view.changes is None:
            return ("unavailable",)
        told = tuple(view.changes.values())
        view.changes.clear()
        return told

    def _happen(self, step: Step) -> Told:
        if step.verb == "age":
            self.live.clear()
            self.markers.clear()
        elif step.verb == "cut":
            self.cut.add(step.client)
            if step.client in self.views:
                self.views[step.client].changes = None
        else:
            self.cut.discard(step.client)
        if step.verb == "deliver":
            for write in self.withheld.pop(step.client, []):
                write()
        return ()

    def _shown(self, key: str) -> Told:
        return (key, *self.live[key]) if key in self.live else ("absent",)
