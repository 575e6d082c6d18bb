"""The typed bodies by category; importing this package registers all of them."""

from crewlet.events.types.a2a import A2aChannelClosed, A2aChannelOpened, A2aMessage, A2aMessageSent, A2aRequest
from crewlet.events.types.lifecycle import (
    AgentSpawned,
    AgentTerminated,
    OrgStarted,
    OrgStopped,
    SeatPaused,
    SeatResumed,
)
from crewlet.events.types.notification import (
    ExternalNotification,
    InboundDelivery,
    NotificationSkipped,
    RawWebhook,
    TurnTriggerSkipped,
)
from crewlet.events.types.task import TaskAssigned
from crewlet.events.types.turn import (
    AgentPhaseCompleted,
    AgentPhaseStarted,
    AgentTurnCompleted,
    AgentTurnProgress,
    AgentTurnStarted,
    AgentTurnStopped,
    LlmUnavailable,
    PhaseRound,
    ProviderFallback,
    Refusal,
    RoundNarration,
    ToolExecution,
    TriggerSummary,
    TurnGuardBreach,
)

__all__ = [
    "A2aChannelClosed",
    "A2aChannelOpened",
    "A2aMessage",
    "A2aMessageSent",
    "A2aRequest",
    "AgentPhaseCompleted",
    "AgentPhaseStarted",
    "AgentSpawned",
    "AgentTerminated",
    "AgentTurnCompleted",
    "AgentTurnProgress",
    "AgentTurnStarted",
    "AgentTurnStopped",
    "ExternalNotification",
    "InboundDelivery",
    "LlmUnavailable",
    "NotificationSkipped",
    "OrgStarted",
    "OrgStopped",
    "PhaseRound",
    "ProviderFallback",
    "RawWebhook",
    "Refusal",
    "RoundNarration",
    "SeatPaused",
    "SeatResumed",
    "TaskAssigned",
    "ToolExecution",
    "TriggerSummary",
    "TurnGuardBreach",
    "TurnTriggerSkipped",
]
