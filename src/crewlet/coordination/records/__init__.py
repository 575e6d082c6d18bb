"""The shared records, each written once over the record store's contract."""

from crewlet.coordination.records.budget_charge import Refusal, SeatShareMissing, Spend, Verdict
from crewlet.coordination.records.budget_record import (
    COMPANY_SCOPE,
    UNCAPPED,
    BudgetRecord,
    Ceilings,
    WindowSlot,
    agent_scope,
    without_room,
)
from crewlet.coordination.records.budget_windows import Period, Windows, turns_over_at, windows_at
from crewlet.coordination.records.budgets import Budgets
from crewlet.coordination.records.channels import Channel, Channels, ChannelStatus, answered, closed, opened
from crewlet.coordination.records.config_pointer import (
    CONFIG_POINTER_PATTERN,
    ActiveConfig,
    ConfigPointer,
    ConfigPointers,
)
from crewlet.coordination.records.cooldown_pull import CooldownPull
from crewlet.coordination.records.cooldowns import Cooldown, Cooldowns
from crewlet.coordination.records.custody import Custodies, Custody
from crewlet.coordination.records.delivery_claims import ClaimTooLong, DeliveryClaim, DeliveryClaims, Seen
from crewlet.coordination.records.fires import Fire, Fires
from crewlet.coordination.records.follows import Follow, Follows
from crewlet.coordination.records.integrations import Finding, IntegrationPhase, Integrations, IntegrationStatus
from crewlet.coordination.records.ledger import Completion, Ledger
from crewlet.coordination.records.mailboxes import Mailboxes, SeatMailbox
from crewlet.coordination.records.node_status import NodeStatus, NodeStatuses
from crewlet.coordination.records.objects import CollectorReport, ObjectBackend, Objects
from crewlet.coordination.records.onboardings import OnboardingClaim, OnboardingMark, Onboardings
from crewlet.coordination.records.positions import (
    Admission,
    BackupCoverage,
    CapacityOperation,
    LogPosition,
    NodePosition,
    Pin,
    Positions,
    PublishedFloor,
    RestartAcknowledgement,
    may_write_first,
)
from crewlet.coordination.records.rate_valve import RateValve, RateWindow
from crewlet.coordination.records.rebases import Rebase, Rebases, WorkInstant
from crewlet.coordination.records.sandbox_runs import (
    RunStatus,
    SandboxRun,
    SandboxRuns,
    run_given_back,
    run_resumed,
    run_suspended,
)
from crewlet.coordination.records.sealed_secrets import SealedSecret, SealedSecrets, SealedText, SecretEntry
from crewlet.coordination.records.seat_pauses import PauseChange, Paused, SeatPause, SeatPauses
from crewlet.coordination.records.stored import Stored

__all__ = [
    "COMPANY_SCOPE",
    "CONFIG_POINTER_PATTERN",
    "UNCAPPED",
    "ActiveConfig",
    "Admission",
    "BackupCoverage",
    "BudgetRecord",
    "Budgets",
    "CapacityOperation",
    "Ceilings",
    "Channel",
    "ChannelStatus",
    "Channels",
    "ClaimTooLong",
    "CollectorReport",
    "Completion",
    "ConfigPointer",
    "ConfigPointers",
    "Cooldown",
    "CooldownPull",
    "Cooldowns",
    "Custodies",
    "Custody",
    "DeliveryClaim",
    "DeliveryClaims",
    "Finding",
    "Fire",
    "Fires",
    "Follow",
    "Follows",
    "IntegrationPhase",
    "IntegrationStatus",
    "Integrations",
    "Ledger",
    "LogPosition",
    "Mailboxes",
    "NodePosition",
    "NodeStatus",
    "NodeStatuses",
    "ObjectBackend",
    "Objects",
    "OnboardingClaim",
    "OnboardingMark",
    "Onboardings",
    "PauseChange",
    "Paused",
    "Period",
    "Pin",
    "Positions",
    "PublishedFloor",
    "RateValve",
    "RateWindow",
    "Rebase",
    "Rebases",
    "Refusal",
    "RestartAcknowledgement",
    "RunStatus",
    "SandboxRun",
    "SandboxRuns",
    "SealedSecret",
    "SealedSecrets",
    "SealedText",
    "SeatMailbox",
    "SeatPause",
    "SeatPauses",
    "SeatShareMissing",
    "SecretEntry",
    "Seen",
    "Spend",
    "Stored",
    "Verdict",
    "WindowSlot",
    "Windows",
    "WorkInstant",
    "agent_scope",
    "answered",
    "closed",
    "may_write_first",
    "opened",
    "run_given_back",
    "run_resumed",
    "run_suspended",
    "turns_over_at",
    "windows_at",
    "without_room",
]
