"""Model providers, their credentials, the fallback chain, and the scripted model."""

from crewlet.llm.bag import Bench, OnBench
from crewlet.llm.chain import Chain
from crewlet.llm.contract import (
    AssistantMessage,
    ChainExhausted,
    FailureKind,
    Fallback,
    Message,
    Model,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OnDelta,
    OnFallback,
    StopReason,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from crewlet.llm.models import Models, build_models
from crewlet.llm.native_blocks import packed
from crewlet.llm.provider_config import Cooldowns, ProviderConfig, ProviderType, ReasoningEffort
from crewlet.llm.script import Script, load_script, parse_script
from crewlet.llm.script_reader import ScriptedAnswer, ScriptReader
from crewlet.llm.scripted_model import SCRIPTED_MODEL, ScriptedModel
from crewlet.llm.vendor_model import VendorModel

__all__ = [
    "SCRIPTED_MODEL",
    "AssistantMessage",
    "Bench",
    "Chain",
    "ChainExhausted",
    "Cooldowns",
    "FailureKind",
    "Fallback",
    "Message",
    "Model",
    "ModelFailure",
    "ModelReply",
    "ModelRequest",
    "Models",
    "OnBench",
    "OnDelta",
    "OnFallback",
    "ProviderConfig",
    "ProviderType",
    "ReasoningEffort",
    "Script",
    "ScriptReader",
    "ScriptedAnswer",
    "ScriptedModel",
    "StopReason",
    "ToolCall",
    "ToolResultMessage",
    "ToolSpec",
    "Usage",
    "UserMessage",
    "VendorModel",
    "build_models",
    "load_script",
    "packed",
    "parse_script",
]
