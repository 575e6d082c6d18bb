"""What a tool server is: all that is needed to reach it, with no ``${VAR}`` left, so that two can be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from crewlet.base import limits
from crewlet.base.errors import ConfigError, Problem
from crewlet.tools.contract import Annotations, Hint

__all__ = ["RESERVED_SERVER_NAME", "HintOverrides", "ToolServerSpec", "Transport", "parse_overrides"]

Transport = Literal["stdio", "http"]
RESERVED_SERVER_NAME: Final = "crewlet"

_HUMP: Final = re.compile(r"(?<=[a-z])([A-Z])")


@dataclass(frozen=True, slots=True)
class HintOverrides:
    """What the company document says of one tool; ``None`` leaves the server's own word."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    def over(self, advertised: Annotations) -> Annotations:
        """The advertised hints, with these in place where they say something."""
        return Annotations(
            read_only=hint_of(self.read_only, advertised.read_only),
            destructive=hint_of(self.destructive, advertised.destructive),
            idempotent=hint_of(self.idempotent, advertised.idempotent),
            open_world=hint_of(self.open_world, advertised.open_world),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServerSpec:
    """One tool server, resolved. Equal specs mean the same server: a running one need not be started again.

    ``env`` and ``headers`` hold secrets and stay out of ``repr``; ``secrets`` are the values that must not appear in a
    result, an error or a log. ``tool_annotations`` is keyed by the server's own tool names.
    """

    name: str
    transport: Transport = "stdio"
    shared: bool = True
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    tool_prefix: str = ""
    tool_annotations: Mapping[str, HintOverrides] = field(default_factory=dict[str, HintOverrides])
    startup_timeout_s: float = limits.TOOL_SERVER_START_TIMEOUT_S
    request_timeout_s: float = limits.TOOL_CALL_TIMEOUT_S
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        problems = tuple(self._problems())
        if problems:
            raise ConfigError(*problems)

    def for_seat(self, mcp_env: Mapping[str, str], secrets: frozenset[str] = frozenset()) -> ToolServerSpec:
        """This template with one seat's ``mcp_env``: variables of a process, headers of an HTTP server."""
        if self.transport == "stdio":
            return replace(self, shared=False, env={**self.env, **mcp_env}, secrets=self.secrets | secrets)
        return replace(self, shared=False, headers={**self.headers, **mcp_env}, secrets=self.secrets | secrets)

    def _problems(self) -> list[Problem]:
        path = f"mcp_servers.{self.name}"
        found: list[Problem] = []
        if not self.name or self.name == RESERVED_SERVER_NAME:
            found.append(Problem("mcp_servers", f"a tool server may not be named {self.name!r}", "choose another name"))
        if self.transport == "stdio" and not self.command:
            found.append(Problem(f"{path}.command", "a stdio server needs a command", "name the program to start"))
        if self.transport == "http" and not self.url.startswith(("http://", "https://")):
            found.append(Problem(f"{path}.url", "an http server needs an http:// or https:// url"))
        if min(self.startup_timeout_s, self.request_timeout_s) <= 0:
            found.append(Problem(path, "a timeout must be above zero seconds"))
        return found


def parse_overrides(written: Mapping[str, Mapping[str, bool]]) -> dict[str, HintOverrides]:
    """Overrides as people write them: ``read_only``, ``readOnly``, ``read_only_hint`` and ``readOnlyHint`` are one.

    Raises ``ConfigError`` for a hint that does not exist.
    """
    return {tool: _override(tool, hints) for tool, hints in written.items()}


def _override(tool: str, hints: Mapping[str, bool]) -> HintOverrides:
    plain = {_HUMP.sub(r"_\1", key).lower().removesuffix("_hint"): value for key, value in hints.items()}
    known = HintOverrides.__dataclass_fields__.keys()
    unknown = sorted(plain.keys() - known)
    if unknown:
        raise ConfigError(
            Problem(f"tool_annotations.{tool}", f"unknown: {', '.join(unknown)}", f"known are {', '.join(known)}")
        )
    return HintOverrides(**plain)


def hint_of(said: bool | None, otherwise: Hint = Hint.UNKNOWN) -> Hint:  # noqa: FBT001 - the value, not a switch
    """A hint from a yes, a no, or silence."""
    if said is None:
        return otherwise
    return Hint.YES if said else Hint.NO
