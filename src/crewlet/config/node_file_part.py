"""Field types of the node file: its texts may come from variables, so numbers and switches are read from text too."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from crewlet.org import VARIABLE_REFERENCE, refused

__all__ = ["FromText", "parse_duration_s"]

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)")
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_SWITCHES: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class FromText:
    """Marks a number or switch that is taken as text too: that is what a variable expands to."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_from_text, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": "string", "pattern": VARIABLE_REFERENCE}]}


def _from_text(written: object) -> object:
    if not isinstance(written, str):
        return written
    return int(written) if _WHOLE.fullmatch(written) else _SWITCHES.get(written, written)


def parse_duration_s(text: str) -> float:
    """Seconds of a duration like ``500ms``, ``2s``, ``1.5m``. Raises the validator's error."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise refused("is no duration", "write it like 500ms, 2s or 1m")
    return float(found.group(1)) * _UNITS_S[found.group(2)]
