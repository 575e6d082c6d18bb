"""The broker process, the one connection, and the queue and the record store on JetStream."""

from crewlet.backends.nats.buckets import OpenedBucket, bucket_config, open_bucket, open_buckets
from crewlet.backends.nats.cluster_waits import refuse_second_of_a_name, wait_current, wait_for_peers
from crewlet.backends.nats.connection import Connection, connect
from crewlet.backends.nats.dead_letter_box import DeadLetterBox
from crewlet.backends.nats.embedded_broker import BrokerConfig, EmbeddedBroker
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import Storage
from crewlet.backends.nats.leaf_waits import MembersStreams, wait_for_members
from crewlet.backends.nats.log import JetStreamLog
from crewlet.backends.nats.login import TlsFiles
from crewlet.backends.nats.member_health import MemberHealth, look_at_copies, look_at_member
from crewlet.backends.nats.queue import JetStreamQueue
from crewlet.backends.nats.records import NatsRecordStore
from crewlet.backends.nats.server_config import ClusterSettings, LeafListener, LeafRemotes
from crewlet.backends.nats.wire import Wire

__all__ = [
    "BrokerConfig",
    "ClusterSettings",
    "Connection",
    "DeadLetterBox",
    "EmbeddedBroker",
    "JetStream",
    "JetStreamLog",
    "JetStreamQueue",
    "LeafListener",
    "LeafRemotes",
    "MemberHealth",
    "MembersStreams",
    "NatsRecordStore",
    "OpenedBucket",
    "Storage",
    "TlsFiles",
    "Wire",
    "bucket_config",
    "connect",
    "look_at_copies",
    "look_at_member",
    "open_bucket",
    "open_buckets",
    "refuse_second_of_a_name",
    "wait_current",
    "wait_for_members",
    "wait_for_peers",
]
