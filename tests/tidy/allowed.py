"""The exceptions to the house rules, each with its reason; an entry that is no longer needed fails the tests."""

from __future__ import annotations

__all__ = ["BROAD_HANDLERS", "CLOCKS_AND_CHANCE", "OTHER_CHANNELS", "TEXTS_LIKE_BROKER_NAMES"]

BROAD_HANDLERS: dict[str, str] = {
    "api/gate.py": "a fault of one route is that request's 500; the server and its other clients go on",
    "backends/memory/queue_attachment.py": "as on the real broker: a handler's fault is a failed delivery",
    "backends/memory/queue_ephemeral.py": "a reader's or a responder's fault is its own, not the feed's or the asker's",
    "backends/memory/queue_publisher.py": "a publish listener that fails is logged and never fails the publish (E-191)",
    "backends/nats/connection.py": "a fault in a dial must not leave the node deaf for ever",
    "backends/nats/link_client.py": "an error would end the client's read loop and leave the whole node deaf",
    "backends/nats/queue_attachment.py": "a handler's fault is a failed delivery; its own must not leave it deaf",
    "backends/nats/queue_batch.py": "options that cannot be told leave the last ones in force, not the seat deaf",
    "backends/nats/queue_live_feed.py": "one reader's fault costs that reader an event, not the feed its life",
    "backends/nats/queue_publisher.py": "a publish listener that fails is logged and never fails the publish (E-191)",
    "backends/nats/queue_questions.py": "a responder's fault is its asker's answer, never silence",
    "backends/nats/wire_listeners.py": "a failing listener must not keep the others, or the next dial, from happening",
    "cli/__init__.py": "the outermost supervisor: a fault of ours is told in one line, its stack on request",
    "duties/jobs.py": "a fault of one maintenance job is that job's alone; the others have their turn",
    "duties/tick_loop.py": "a fault of one tick is told and its duty given back; a dead loop would leave it undone",
    "inbox/digest.py": "what a source makes of its own words may fail; its batch is then worked one by one",
    "inbox/message_keys.py": "as above, and the event has no second key then",
    "inbox/seat_turns.py": "a defect ends its turn as given up: handed back, it would only be met again",
    "inbox/thread_showing.py": "a source that cannot show a thread costs the turn that thread, not its run",
    "llm/endpoint.py": "what vendors' SDKs raise over a broken answer has no common root; it is classified, once",
    "queue/unheard.py": "a listener's fault must neither hold a buried message back nor keep the next from hearing",
    "queue/batches.py": "a partition key that cannot be told costs its event its company, not the haul its handling",
    "seats/host.py": "a defect met with one seat must not end the renews and claims of all the others",
    "seats/seat_keeping.py": "a hook that breaks gives its own seat up and ends no other's",
    "seats/teardown.py": "a hook that breaks keeps its own seat undead and ends no other's",
    "store/readers.py": "a caller's function failed: its error is that caller's answer, and the thread goes on",
    "store/writer.py": "as in the readers; the thread's own failure is told to whoever opened it",
    "tools/server_life.py": "a tool server's faults are many: they end its own life, or become the result of one call",
    "testing/simulated/process.py": "whatever is thrown into a stopped task is kept for its next step",
    "turns/delegation.py": "a fault of one worker is its own task's failure, and not the turn's",
    "turns/engine.py": "a fault of the engine ends its turn as failed: raised, it would be redelivered to fail again",
    "turns/tool_calls.py": "a fault of one tool is a failed result that the model reads",
}
"""Modules with a supervisor that may catch everything."""

CLOCKS_AND_CHANCE: dict[str, str] = {}
"""Modules outside base that may read the machine's clock."""

OTHER_CHANNELS: dict[str, str] = {
    "api/listening.py": "the listener of the HTTP API, for whoever is outside",
    "api/server.py": "as above",
    "store/readers.py": "to the database's own threads, where the same part waits for the answer",
    "store/writer.py": "as above",
    "tools/server.py": "to the one task that owns a tool server's session, where the same part waits for the answer",
    "tools/server_life.py": "as above",
    "tools/stdio_transport.py": "the wire to a tool server's process",
}
"""Modules with a channel that is no way between parts."""

TEXTS_LIKE_BROKER_NAMES: dict[str, str] = {
    r"CREWLET_(API_TOKEN|NODE_ID|PYTHON|TRACEBACK)$": "an environment variable",
    r"crewlet_(events|event_parties)\b": "a table of the node's own database",
}
"""Patterns of texts that begin like a name of the broker and are none, wherever they stand."""
