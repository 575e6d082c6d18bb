"""The company document, and the organisation derived from it: pure, without files, clocks or environment."""

from crewlet.org.chain_above import chain_hash, managers_above, units_around
from crewlet.org.credentials import credential_in_url
from crewlet.org.document import CompanyDocument
from crewlet.org.document_part import NOT_SUPPORTED_YET, DocumentPart, Later, Required, Texts, refused
from crewlet.org.document_providers import ModelType, ReasoningEffort
from crewlet.org.document_tool_servers import Transport
from crewlet.org.model_entries import ModelEntry, ModelPick, Phase, SkippedModel, model_chain, skipped_models
from crewlet.org.names import AGENT_NAMESPACE, UnitKey, agent_id_for, is_handle, mint
from crewlet.org.organization import NotificationLimits, Organization, TurnLimits
from crewlet.org.organize import organize
from crewlet.org.output_schema import output_problems
from crewlet.org.rules import company_problems
from crewlet.org.seats import Seat, SeatKind, SeatPlacement, Unit
from crewlet.org.token_budget import TokenBudget
from crewlet.org.tool_servers import ToolHints, ToolServer
from crewlet.org.variable_references import (
    VARIABLE_REFERENCE,
    is_whole_reference,
    malformed_reference,
    variable_names,
    with_values,
)
from crewlet.org.workers import DelegationLimits, WorkerTemplate

__all__ = [
    "AGENT_NAMESPACE",
    "NOT_SUPPORTED_YET",
    "VARIABLE_REFERENCE",
    "CompanyDocument",
    "DelegationLimits",
    "DocumentPart",
    "Later",
    "ModelEntry",
    "ModelPick",
    "ModelType",
    "NotificationLimits",
    "Organization",
    "Phase",
    "ReasoningEffort",
    "Required",
    "Seat",
    "SeatKind",
    "SeatPlacement",
    "SkippedModel",
    "Texts",
    "TokenBudget",
    "ToolHints",
    "ToolServer",
    "Transport",
    "TurnLimits",
    "Unit",
    "UnitKey",
    "WorkerTemplate",
    "agent_id_for",
    "chain_hash",
    "company_problems",
    "credential_in_url",
    "is_handle",
    "is_whole_reference",
    "malformed_reference",
    "managers_above",
    "mint",
    "model_chain",
    "organize",
    "output_problems",
    "refused",
    "skipped_models",
    "units_around",
    "variable_names",
    "with_values",
]
