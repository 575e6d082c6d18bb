"""A seat as the company document describes it."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from crewlet.base import limits
from crewlet.org.document_budget import TokenBudgetDocument
from crewlet.org.document_part import DocumentPart, Later, NestedVariables, Required, Texts, refused
from crewlet.org.names import HANDLE_GRAMMAR, is_handle

__all__ = ["Chain", "ContactDocument", "HandleText", "ModelPickDocument", "RoleDocument"]

_ONE_OR_MANY: JsonSchemaValue = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


def _check_handle(text: str) -> str:
    if not is_handle(text):
        raise refused(f"is no valid handle: {HANDLE_GRAMMAR}, at most {limits.HANDLE_MAX_CHARS} characters")
    return text


def _as_chain(written: object) -> object:
    return (written,) if isinstance(written, str) else written


HandleText = Annotated[str, AfterValidator(_check_handle)]
"""A handle or a unit key as it is written."""
Chain = Annotated[tuple[str, ...], Field(strict=False), BeforeValidator(_as_chain), WithJsonSchema(_ONE_OR_MANY)]
"""One key of ``providers.llm``, or several in the order in which they are tried."""


class ModelPickDocument(DocumentPart):
    """Which models a seat uses, by phase. A key or a list of keys alone means ``default``."""

    default: Chain = ()
    """Used wherever no other line says more."""
    review: Chain = ()
    subagent: Chain = ()
    """Its workers'."""
    auxiliary: Annotated[object, Later()] = None
    judge: Chain = ()
    """Says whether an execution that is out of model calls gets more."""
    sandbox: Annotated[object, Later()] = None

    @model_validator(mode="before")
    @classmethod
    def _as_mapping(cls, written: object) -> object:
        if isinstance(written, (str, list, tuple)):
            return {"default": cast("object", written)}
        if not isinstance(written, (dict, ModelPickDocument)):
            raise refused("must be a key of providers.llm, a list of keys, or a mapping from phase to keys")
        return cast("object", written)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        by_phase = handler.resolve_ref_schema(handler(schema))
        return {"anyOf": [*cast("list[JsonSchemaValue]", _ONE_OR_MANY["anyOf"]), by_phase]}


class ContactDocument(DocumentPart):
    """Where a human is known outside. Each value is literal, or exactly one ``${VAR}``."""

    slack_user_id: str = ""
    mattermost_user_id: str = ""
    """A Mattermost user name."""
    atlassian_account_id: str = ""
    github_login: str = ""
    gitlab_username: str = ""
    crewlet_operator_id: str = ""
    """The id of one of the node file's ``api.auth.tokens``: what that token does is this person's doing."""


class PlacementDocument(DocumentPart):
    """Which nodes may run the seat: both must hold, compared exactly. It only narrows."""

    node: str = ""
    """A node's id. Labels are the better choice: they outlive the machine."""
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    """Labels that the node carries (``node.labels`` in its file)."""


class RoleDocument(DocumentPart):
    """One seat: an agent, or a human colleague."""

    name: Required
    """The display name."""
    handle: HandleText = ""
    """The seat's identity: mailbox, lease and memory are keyed on it. Minted from the name when absent."""
    kind: Literal["agent", "human"] = "agent"
    """A human is in rosters and routing, and is never run."""
    contact: ContactDocument = ContactDocument()
    """Humans only, who need at least one."""
    availability: str = ""
    """Humans only; shown in rosters."""
    goal: str = ""
    backstory: str = ""
    responsibilities: Texts = ()
    behavioral_guidelines: Texts = ()
    """Agents only."""
    email: str = ""
    manages: Texts = ()
    """Seats by handle or unique name, or units by key or unique name: all seats of their subtree."""
    llm: ModelPickDocument = ModelPickDocument()
    """A key of ``providers.llm``, a list of keys (a fallback chain), or a mapping by phase."""
    llm_review: Chain = ()
    """Overrides ``llm.review``."""
    llm_subagent: Chain = ()
    """Overrides ``llm.subagent``."""
    llm_auxiliary: Annotated[object, Later()] = None
    llm_judge: Chain = ()
    """Overrides ``llm.judge``."""
    llm_sandbox: Annotated[object, Later()] = None
    mcp_env: NestedVariables = Field(default_factory=dict[str, dict[str, str]])
    """By tool server: environment variables (stdio) or headers (http) of this seat's own connection."""
    token_budget: TokenBudgetDocument = TokenBudgetDocument()
    """Agents only: what this seat may spend. The company's holds beside it."""
    placement: PlacementDocument = PlacementDocument()
    """Agents only. Empty: any node may run it."""
    integrations: Annotated[object, Later()] = None
    project: Annotated[object, Later()] = None
    space: Annotated[object, Later()] = None
    unit: Annotated[object, Later()] = None
    workers: Texts = ()
    """Agents only: the workers that it may use, by name. Empty: all of them."""
    sandbox: Annotated[object, Later()] = None
    schedules: Annotated[object, Later()] = None
    learning_enabled: Annotated[object, Later()] = None
