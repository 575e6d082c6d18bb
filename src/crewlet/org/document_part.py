"""What every part of a written document has in common: strict types, no unknown keys, and fields that come later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, LiteralString, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

__all__ = ["NOT_SUPPORTED_YET", "DocumentPart", "Later", "NestedVariables", "Required", "Texts", "Variables", "refused"]

NOT_SUPPORTED_YET: Final = "not_supported_yet"
"""The error type of a field whose subsystem does not exist yet."""


def refused(problem: str, remedy: str = "", *, kind: LiteralString = "refused") -> PydanticCustomError:
    """The error a validator raises: what is wrong, what to do about it. A value that may be secret stays out of it."""
    return PydanticCustomError(kind, "{problem}", {"problem": problem, "remedy": remedy})


class DocumentPart(BaseModel):
    """One mapping of a document. Unknown keys are refused, a known key without a value counts as absent."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    @model_validator(mode="before")
    @classmethod
    def _absent_where_empty(cls, written: object) -> object:
        if not isinstance(written, dict):
            return written
        mapping = cast("dict[str, object]", written)
        return {key: value for key, value in mapping.items() if value is not None or key not in cls.model_fields}


@dataclass(frozen=True, slots=True, eq=False)  # By identity: 0 equals False, and `Annotated` shares what is equal.
class Later:
    """Marks a field of a subsystem that does not exist yet: anything but nothing or its default is refused."""

    default: object = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"const": self.default, "description": "Not supported yet."}

    def _check(self, written: Any) -> object:  # noqa: ANN401 - whatever a person wrote
        same = type(written) is type(self.default) and written == self.default
        if not same and (not isinstance(written, (dict, list, str)) or len(cast("str", written)) > 0):
            raise refused("not supported yet", "remove this field", kind=NOT_SUPPORTED_YET)
        return self.default


def _not_blank(text: str) -> str:
    if not text.strip():
        raise refused("must not be empty")
    return text


Required = Annotated[str, AfterValidator(_not_blank)]
"""Text with something in it."""
Texts = Annotated[tuple[str, ...], Field(strict=False)]
"""A list of texts, kept as a tuple."""
Variables = dict[str, str]
"""Environment variables or headers: the values keep their ``${VAR}`` references."""
NestedVariables = dict[str, dict[str, str]]
"""The same by tool server."""
