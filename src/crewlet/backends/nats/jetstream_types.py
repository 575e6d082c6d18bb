"""What we say to and read from the broker's ``$JS.API``: only the fields that this engine uses. Durations are in ns."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

import msgspec

from crewlet.base.errors import CrewletError, MailboxFull

__all__ = [
    "CONSUMER_LIMIT_REACHED",
    "CONSUMER_NOT_FOUND",
    "MESSAGE_NOT_FOUND",
    "NO_ROOM",
    "STREAM_FULL",
    "STREAM_NAME_IN_USE",
    "STREAM_NOT_FOUND",
    "WRONG_LAST_SEQUENCE",
    "AccountInfo",
    "AccountLimits",
    "ApiError",
    "ClusterInfo",
    "ConsumerConfig",
    "ConsumerInfo",
    "PubAck",
    "ReplicaInfo",
    "SequencePair",
    "Storage",
    "StoredMessage",
    "StreamConfig",
    "StreamInfo",
    "StreamState",
    "awaits_peers",
    "full",
    "lacks_room",
    "ns",
]

CONSUMER_NOT_FOUND: Final = 10014
CONSUMER_LIMIT_REACHED: Final = 10026
MESSAGE_NOT_FOUND: Final = 10037
STREAM_NAME_IN_USE: Final = 10058
STREAM_NOT_FOUND: Final = 10059
NO_ROOM: Final = frozenset({10002, 10023, 10028, 10047})
"""The account or the server has not the memory or the disk for what was asked; nothing was done."""
_NO_PEERS: Final = 10005
STREAM_FULL: Final = NO_ROOM | {10077}
"""What a publish is refused with that does not fit any more."""
WRONG_LAST_SEQUENCE: Final = frozenset({10071, 10164})
"""A lost compare-and-set; the second code is the broker's for one that lost against a write still in flight."""

Storage = Literal["file", "memory"]


def ns(seconds: float) -> int:
    """Seconds as the broker counts them."""
    return round(seconds * 1_000_000_000)


class ApiError(CrewletError):
    """The broker understood and said no. ``code`` is HTTP-like, ``err_code`` names the reason."""

    def __init__(self, subject: str, *, code: int, err_code: int, description: str) -> None:
        self.subject = subject
        self.code = code
        self.err_code = err_code
        self.description = description
        super().__init__(f"{subject}: {description} (code {code}, error {err_code})")


def lacks_room(refused: ApiError) -> bool:
    """Whether a stream was refused for its size: nobody has the memory or the disk that it would reserve.

    A cluster says so among other reasons to find no members for it, with their one code; only its words tell.
    """
    is_placement = refused.err_code == _NO_PEERS and "insufficient" in refused.description
    return is_placement or refused.err_code in NO_ROOM


def awaits_peers(refused: ApiError) -> bool:
    """Whether a stream was refused since too few members are there to keep its copies; more may come."""
    return refused.err_code == _NO_PEERS and not lacks_room(refused)


def full(topic: str, refused: ApiError) -> MailboxFull:
    """What a publish that was refused with one of ``STREAM_FULL`` raises.

    One code stands for a stream at its limit and for one whose disk failed; the broker's words tell them apart.
    """
    return MailboxFull(topic, refused.description, at_limit=refused.description.startswith("maximum"))


class StreamConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stream's settings."""

    name: str
    subjects: list[str] = []
    description: str = ""
    retention: Literal["limits", "interest", "workqueue"] = "limits"
    storage: Storage | None = None
    discard: Literal["old", "new"] | None = None
    num_replicas: int = 0
    max_consumers: int = 0
    max_msgs: int = 0
    max_bytes: int = 0
    max_age: int = 0
    first_seq: int = 0
    max_msgs_per_subject: int = 0
    max_msg_size: int = 0
    duplicate_window: int = 0
    allow_direct: bool = False
    allow_rollup_hdrs: bool = False
    deny_delete: bool = False
    deny_purge: bool = False
    metadata: dict[str, str] = {}


class StreamState(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream holds. ``subjects`` is there only when it was asked for."""

    messages: int = 0
    bytes: int = 0
    first_seq: int = 0
    last_seq: int = 0
    consumer_count: int = 0
    num_subjects: int = 0
    subjects: dict[str, int] | None = None


class ReplicaInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One copy beside the leader's: whose, whether it holds what the leader does, and how many entries it lacks."""

    name: str
    current: bool = False
    lag: int = 0


class ClusterInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads a stream; ``leader`` is empty during an election, when any member answers from its own copy."""

    leader: str = ""
    replicas: list[ReplicaInfo] = []


class StreamInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A stream's settings in force and its state, as its leader said, at ``ts`` on that member's clock.

    ``total`` is how many subjects there are, where they were asked for, and ``did_create`` only on a create's answer.
    """

    config: StreamConfig
    created: datetime
    state: StreamState = StreamState()
    cluster: ClusterInfo | None = None
    ts: datetime | None = None
    total: int = 0
    did_create: bool = False

    @property
    def led(self) -> bool:
        """Whether it was the stream's leader that answered; a broker alone is always that."""
        return self.cluster is None or bool(self.cluster.leader)


class ConsumerConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One consumer's settings; ``durable_name`` empty and ``inactive_threshold`` set: an ephemeral one."""

    name: str = ""
    durable_name: str = ""
    description: str = ""
    deliver_policy: str = "all"
    opt_start_seq: int = 0
    ack_policy: str | None = None
    ack_wait: int = 0
    max_deliver: int = 0
    backoff: list[int] = []
    filter_subject: str = ""
    filter_subjects: list[str] = []
    replay_policy: str | None = None
    max_waiting: int = 0
    max_ack_pending: int = 0
    max_batch: int = 0
    inactive_threshold: int = 0
    num_replicas: int = 0
    mem_storage: bool = False
    deliver_subject: str = ""
    flow_control: bool = False
    idle_heartbeat: int = 0
    headers_only: bool = False
    metadata: dict[str, str] = {}


class SequencePair(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a consumer's deliveries, and the same place in its stream."""

    consumer_seq: int = 0
    stream_seq: int = 0


class ConsumerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer's settings in force and where it stands."""

    stream_name: str
    name: str
    config: ConsumerConfig
    created: datetime | None = None
    delivered: SequencePair = SequencePair()
    ack_floor: SequencePair = SequencePair()
    num_ack_pending: int = 0
    num_redelivered: int = 0
    num_waiting: int = 0
    num_pending: int = 0


class PubAck(msgspec.Struct, frozen=True, kw_only=True):
    """The broker stored the message, or had it already (``duplicate``)."""

    stream: str
    seq: int
    duplicate: bool = False


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message as the stream's leader holds it."""

    subject: str
    seq: int
    time: datetime
    data: bytes = b""
    headers: dict[str, str] = {}


class AccountLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the account may hold, in bytes; -1 where only the server's own limit stands."""

    max_memory: int = -1
    max_storage: int = -1

    def of(self, storage: Storage) -> int:
        """The limit on one kind of storage."""
        return self.max_memory if storage == "memory" else self.max_storage


class AccountInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Whether JetStream serves us, and how much it holds for us."""

    memory: int = 0
    storage: int = 0
    streams: int = 0
    consumers: int = 0
    limits: AccountLimits = AccountLimits()
