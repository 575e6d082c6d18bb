"""A vendor's own blocks of a reply, as plain JSON and back, so that a journal can keep them to the letter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

__all__ = ["packed", "unpacked"]


def packed(native: object | None) -> Any:  # noqa: ANN401 - whatever JSON the vendor's blocks are
    """The blocks as JSON, signatures and all; ``None`` for none. What is packed already comes back as it is."""
    if native is None or isinstance(native, dict):
        return cast("dict[str, Any] | None", native)
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.dump_python([native], mode="json")[0]  # pyright: ignore[reportArgumentType]


def unpacked(native: object | None) -> ModelResponse | None:
    """The blocks as the vendor's library knows them; ``None`` where they are none that it can read.

    Then the reply is rebuilt from its neutral form, as one of another vendor is.
    """
    from pydantic import ValidationError
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

    if isinstance(native, dict):
        try:
            native = ModelMessagesTypeAdapter.validate_python([native])[0]
        except ValidationError:
            return None
    return native if isinstance(native, ModelResponse) else None
