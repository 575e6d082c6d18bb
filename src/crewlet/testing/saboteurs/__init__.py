"""Twins with one planted fault each, and the promise that must find each of them out."""

from crewlet.testing.saboteurs.budget_counting_faults import BUDGET_COUNTING_FAULTS
from crewlet.testing.saboteurs.budget_failure_faults import BUDGET_FAILURE_FAULTS
from crewlet.testing.saboteurs.budget_lane_faults import BUDGET_LANE_FAULTS
from crewlet.testing.saboteurs.budget_mark_faults import BUDGET_MARK_FAULTS
from crewlet.testing.saboteurs.budget_saboteur import BudgetSaboteur
from crewlet.testing.saboteurs.budget_turning_faults import BUDGET_TURNING_FAULTS
from crewlet.testing.saboteurs.log_append_faults import LOG_APPEND_FAULTS
from crewlet.testing.saboteurs.log_read_faults import LOG_READ_FAULTS
from crewlet.testing.saboteurs.log_saboteur import LogSaboteur, planted_logs
from crewlet.testing.saboteurs.log_unheard_faults import LOG_UNHEARD_FAULTS
from crewlet.testing.saboteurs.queue_batch_faults import BATCH_FAULTS
from crewlet.testing.saboteurs.queue_budget_faults import BUDGET_FAULTS
from crewlet.testing.saboteurs.queue_haul_faults import HAUL_FAULTS
from crewlet.testing.saboteurs.queue_holder_faults import HOLDER_FAULTS
from crewlet.testing.saboteurs.queue_letting_go_faults import LETTING_GO_FAULTS
from crewlet.testing.saboteurs.queue_listening_faults import LISTENING_FAULTS
from crewlet.testing.saboteurs.queue_live_faults import LIVE_FAULTS
from crewlet.testing.saboteurs.queue_mailbox_faults import MAILBOX_FAULTS
from crewlet.testing.saboteurs.queue_outcome_faults import OUTCOME_FAULTS
from crewlet.testing.saboteurs.queue_publishing_faults import PUBLISHING_FAULTS
from crewlet.testing.saboteurs.queue_saboteur import QueueSaboteur, planted
from crewlet.testing.saboteurs.queue_unheard_faults import UNHEARD_FAULTS
from crewlet.testing.saboteurs.record_listing_faults import LISTING_FAULTS
from crewlet.testing.saboteurs.record_removal_faults import REMOVAL_FAULTS
from crewlet.testing.saboteurs.record_saboteur import RecordSaboteur, planted_records
from crewlet.testing.saboteurs.record_time_faults import TIME_FAULTS
from crewlet.testing.saboteurs.record_unknown_faults import UNKNOWN_FAULTS
from crewlet.testing.saboteurs.record_watch_answer_faults import WATCH_ANSWER_FAULTS, WATCH_END_FAULTS
from crewlet.testing.saboteurs.record_watch_faults import WATCH_FAULTS
from crewlet.testing.saboteurs.record_write_faults import WRITE_FAULTS

__all__ = [
    "BUDGET_SABOTEURS",
    "LOG_SABOTEURS",
    "QUEUE_SABOTEURS",
    "RECORD_SABOTEURS",
    "BudgetSaboteur",
    "LogSaboteur",
    "QueueSaboteur",
    "RecordSaboteur",
    "planted",
    "planted_logs",
    "planted_records",
]

QUEUE_SABOTEURS: tuple[type[QueueSaboteur], ...] = (
    *OUTCOME_FAULTS,
    *BUDGET_FAULTS,
    *HOLDER_FAULTS,
    *LETTING_GO_FAULTS,
    *PUBLISHING_FAULTS,
    *MAILBOX_FAULTS,
    *BATCH_FAULTS,
    *HAUL_FAULTS,
    *LISTENING_FAULTS,
    *LIVE_FAULTS,
    *UNHEARD_FAULTS,
)
"""The saboteurs of the event queue's suite."""

RECORD_SABOTEURS: tuple[type[RecordSaboteur], ...] = (
    *WRITE_FAULTS,
    *REMOVAL_FAULTS,
    *LISTING_FAULTS,
    *WATCH_ANSWER_FAULTS,
    *WATCH_FAULTS,
    *WATCH_END_FAULTS,
    *TIME_FAULTS,
    *UNKNOWN_FAULTS,
)
"""The saboteurs of the record store's suite."""

BUDGET_SABOTEURS: tuple[type[BudgetSaboteur], ...] = (
    *BUDGET_COUNTING_FAULTS,
    *BUDGET_MARK_FAULTS,
    *BUDGET_TURNING_FAULTS,
    *BUDGET_LANE_FAULTS,
    *BUDGET_FAILURE_FAULTS,
)
"""The saboteurs of the token budgets' suite."""

LOG_SABOTEURS: tuple[type[LogSaboteur], ...] = (
    *LOG_APPEND_FAULTS,
    *LOG_READ_FAULTS,
    *LOG_UNHEARD_FAULTS,
)
"""The saboteurs of the log's suite."""
