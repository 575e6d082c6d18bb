"""From what a server advertises to the rows of a seat's surface. Duck-typed, so that no SDK is imported for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from crewlet.base import limits
from crewlet.tools.contract import Annotations, ToolRow
from crewlet.tools.server_spec import HintOverrides, ToolServerSpec, hint_of

__all__ = ["AdvertisedHints", "AdvertisedTool", "model_name", "prefixed", "qualified", "row_of"]

_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_CHARS: Final = 8


class AdvertisedHints(Protocol):
    """The hints of a tool as the protocol carries them."""

    read_only_hint: bool | None
    destructive_hint: bool | None
    idempotent_hint: bool | None
    open_world_hint: bool | None


class AdvertisedTool(Protocol):
    """A tool as the protocol carries it."""

    name: str
    description: str | None
    input_schema: dict[str, Any]

    @property
    def annotations(self) -> AdvertisedHints | None:
        """Its hints, if the server gives any."""
        ...


def row_of(spec: ToolServerSpec, tool: AdvertisedTool, clean: Callable[[str], str]) -> ToolRow:
    """The row of one advertised tool, under the server's prefix, with the document's hints over the server's."""
    return ToolRow(
        name=prefixed(spec.tool_prefix, tool.name),
        description=clean(tool.description or ""),
        input_schema=tool.input_schema,
        origin=f"mcp:{spec.name}",
        server=spec.name,
        annotations=_overrides(spec.tool_annotations, tool.name, spec.tool_prefix).over(_advertised(tool.annotations)),
    )


def prefixed(prefix: str, name: str) -> str:
    """``prefix`` and ``name``, an underscore between them unless the prefix ends in one (or in a hyphen)."""
    joint = "_" if prefix and not prefix.endswith(("_", "-")) else ""
    return model_name(f"{prefix}{joint}{name}")


def qualified(server: str, name: str) -> str:
    """The name of a tool that shares its plain name with another server's."""
    return model_name(f"{server}__{name}")


def model_name(name: str) -> str:
    """``name`` in the grammar that every model API takes: letters, digits, ``_`` and ``-``, at most 64.

    A name that had to be changed ends in a digest of the original, so that two of them stay two.
    """
    plain = _FOREIGN.sub("_", name)
    if plain == name and len(plain) <= limits.TOOL_NAME_MAX_CHARS:
        return name
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{plain[: limits.TOOL_NAME_MAX_CHARS - _DIGEST_CHARS - 1]}_{digest}"


def _advertised(hints: AdvertisedHints | None) -> Annotations:
    if hints is None:
        return Annotations()
    return Annotations(
        read_only=hint_of(hints.read_only_hint),
        destructive=hint_of(hints.destructive_hint),
        idempotent=hint_of(hints.idempotent_hint),
        open_world=hint_of(hints.open_world_hint),
    )


def _overrides(written: Mapping[str, HintOverrides], name: str, prefix: str) -> HintOverrides:
    """By the server's own name of the tool, or by the name that the seats see."""
    return written.get(name) or written.get(prefixed(prefix, name)) or HintOverrides()
