"""Tool servers (MCP) as the company document describes them."""

from __future__ import annotations

import re
from typing import Annotated, Literal, cast

from pydantic import Field, model_validator

from crewlet.base import limits
from crewlet.org.document_part import DocumentPart, Required, Texts, Variables

__all__ = ["ToolAnnotationsDocument", "ToolServerDocument", "Transport"]

Transport = Literal["stdio", "http"]

_HUMP = re.compile(r"(?<=[a-z])([A-Z])")


class ToolAnnotationsDocument(DocumentPart):
    """What a tool does, where its server is silent or wrong. ``readOnly`` and ``readOnlyHint`` will do too."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _snake_case(cls, written: object) -> object:
        if not isinstance(written, dict):
            return written
        mapping = cast("dict[str, object]", written)
        plain = {_HUMP.sub(r"_\1", key).lower().removesuffix("_hint"): key for key in mapping}
        if len(plain) < len(mapping):
            return mapping  # One hint in two spellings: left as written, so that the odd one is refused by its name.
        return {name if name in cls.model_fields else key: mapping[key] for name, key in plain.items()}


class ToolServerDocument(DocumentPart):
    """One MCP server."""

    name: Required
    """``crewlet`` is reserved."""
    transport: Transport = "stdio"
    shared: bool = True
    """One connection for the whole node. Otherwise each seat with ``mcp_env`` for this server gets its own."""
    command: str = ""
    """Stdio only; run in the company document's folder. ``${CREWLET_PYTHON}`` is the engine's own interpreter."""
    args: Texts = ()
    env: Variables = Field(default_factory=dict[str, str])
    url: str = ""
    """Http only."""
    headers: Variables = Field(default_factory=dict[str, str])
    tool_prefix: str = ""
    tool_annotations: dict[str, ToolAnnotationsDocument] = Field(default_factory=dict[str, ToolAnnotationsDocument])
    """By tool; overrides what the server advertises."""
    startup_timeout_seconds: Annotated[float, Field(gt=0)] = limits.TOOL_SERVER_START_TIMEOUT_S
    """To start, shake hands and list the tools."""
    request_timeout_seconds: Annotated[float, Field(gt=0)] = limits.TOOL_CALL_TIMEOUT_S
