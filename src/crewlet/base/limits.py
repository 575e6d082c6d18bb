"""Every bound of the engine, once, with its unit last; a queue, a retry or a wait without a name here is a bug."""

from __future__ import annotations

from typing import Final

# The queue. The shipped values are S2's; the suites run with scaled-down copies.
ACK_WAIT_S: Final = 1800.0
MAX_DELIVER: Final = 25
NAK_BACKOFF_FIRST_S: Final = 1.0
NAK_BACKOFF_MAX_S: Final = 30.0
MAX_LINGER_SECONDS: Final = 60
MAX_BATCH_EVENTS: Final = 100

# The node.
MAX_CONCURRENT_TURNS: Final = 32
LEASE_TTL_S: Final = 45.0
RENEW_AT_FRACTION: Final = 0.8
SEATS_ESTABLISHED_AT_ONCE: Final = 16
DRAIN_PROGRESS_EVERY_S: Final = 10.0
ASK_TASK_TEXT_MAX_CHARS: Final = 8000

# Talking to the broker.
BROKER_REQUEST_TIMEOUT_S: Final = 5.0
BROKER_MAX_PAYLOAD_BYTES: Final = 32 * 1024 * 1024
BROKER_MAX_CONSUMERS: Final = 100_000
BROKER_START_TIMEOUT_S: Final = 30.0
STORE_DIR_LOCK_WAIT_S: Final = 5.0
BROKER_RESTART_BACKOFF_FIRST_S: Final = 0.2
BROKER_RESTART_BACKOFF_MAX_S: Final = 10.0
BROKER_SETTLED_AFTER_S: Final = 30.0
BROKER_STOP_TIMEOUT_S: Final = 10.0
BROKER_LOG_MAX_BYTES: Final = 4 * 1024 * 1024
BROKER_LOG_TAIL_LINES: Final = 20
WIRE_CONNECT_TIMEOUT_S: Final = 5.0
WIRE_CLOSE_TIMEOUT_S: Final = 2.0
WIRE_PING_INTERVAL_S: Final = 2.0
WIRE_PING_TIMEOUT_S: Final = 5.0
WIRE_REDIAL_BACKOFF_FIRST_S: Final = 0.05
WIRE_REDIAL_BACKOFF_MAX_S: Final = 2.0
WIRE_UNSENT_MAX_BYTES: Final = 64 * 1024 * 1024
API_RETRY_FIRST_S: Final = 0.02
API_RETRY_MAX_S: Final = 0.5

# Coordination.
RECORD_CREATE_ATTEMPTS_MAX: Final = 8
RECORD_CHANGE_ATTEMPTS_MAX: Final = 16
LEDGER_WAIT_S: Final = 2.0

# The node's own database.
EVENT_COMMIT_WAIT_S: Final = 0.005
EVENT_WRITE_QUEUE_MAX: Final = 4096

# Model calls and tools.
LLM_TIMEOUT_S: Final = 120.0
TOOL_SERVER_START_TIMEOUT_S: Final = 120.0
TOOL_CALL_TIMEOUT_S: Final = 300.0
TOOL_SERVER_QUEUE_MAX: Final = 256

# The HTTP surface.
REQUEST_BODY_MAX_BYTES: Final = 25 * 1024 * 1024
STREAM_CLIENT_QUEUE_MAX: Final = 1000

# What people write.
DOCUMENT_MAX_BYTES: Final = 4 * 1024 * 1024
DOCUMENT_MAX_VALUES: Final = 500_000
HANDLE_MAX_CHARS: Final = 64
NODE_ID_MAX_CHARS: Final = 64
COOLDOWN_MIN_S: Final = 60
