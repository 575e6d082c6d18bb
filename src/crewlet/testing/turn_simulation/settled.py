"""What has to be true of a simulated company once it has worked off its mail."""

from __future__ import annotations

from crewlet.coordination import BUDGETS, CHANNELS, LEDGER, BudgetRecord, Channel, ChannelStatus, agent_scope
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.budget_record import scope_key
from crewlet.coordination.records.codec import decode_record
from crewlet.inbox import Reply, runs_turn, trigger_of
from crewlet.inbox.message_keys import ledger_key_of
from crewlet.queue import inbox_of
from crewlet.testing.simulation.mail_view import MailView
from crewlet.testing.turn_simulation.plan import HANDLES
from crewlet.testing.turn_simulation.reports import Reports
from crewlet.testing.turn_simulation.rules import Rule
from crewlet.testing.turn_simulation.world import TurnWorld

__all__ = ["SettledCompany"]

_UNHEARD = ("never settled", "the haul was stopped before its turn came")
"""What is said of a last delivery that no handler speaks for."""


class SettledCompany:
    """Holds what is left to the rules."""

    def __init__(self, world: TurnWorld, reports: Reports) -> None:
        self._world = world
        self._reports = reports
        self._view = MailView(world.broker)
        self.letters = 0
        self.unheard = 0
        self.skipped = 0

    def left(self) -> dict[str, list[str]]:
        """The mail that is still there, by seat."""
        found = {handle: [place.event_id for place in self._view.places(inbox_of(handle))] for handle in HANDLES}
        return {handle: ids for handle, ids in found.items() if ids}

    def check(self) -> None:
        """Look at every trigger, ask and reply of the day."""
        self._check_triggers()
        self._check_effects()
        self._check_answers()
        self._check_asks()
        self._check_counters()
        self._check_notes()
        for broken in (*self._reports.broken(), *self._world.failed()):
            self._found("whole", broken)

    def _check_triggers(self) -> None:
        broker, world = self._world.broker, self._world
        letters = {
            (letter.topic, letter.event.id): letter for letter in broker.dead_letters() if letter.event is not None
        }
        worked_by = {(turn.handle, each) for turn in world.outside.turns.values() for each in turn.events}
        unwritten = self._reports.named("ledger_write_failed", "id")
        unwritten_turns = self._reports.named("ledger_write_failed", "turns")
        untold = self._reports.named("turn_trigger_skipped_lost", "seat")
        for (handle, event_id), event in broker.triggers.items():
            letter = letters.get((inbox_of(handle).topic, event_id))
            keys = [event_id, ledger_key_of(event, world.sources)]
            recorded = any(self._recorded(handle, key) for key in keys if key)
            said = broker.skipped.get((handle, event_id), [])
            self.skipped += bool(said)
            if not recorded and letter is None:
                if not said and (handle, event_id) not in worked_by:
                    self._found("ends", f"{event_id} of {handle} is gone: nobody worked it, and nothing was said of it")
                elif not (event_id in unwritten or self._turns_of(handle, event_id) & unwritten_turns):
                    self._found("ledger", f"{event_id} of {handle} is gone, and the ledger does not have it")
            if letter is not None and not recorded:
                self.letters += 1
                self.unheard += any(why in letter.reason for why in _UNHEARD)
                if not any(each.abandoned for each in said) and handle not in untold:
                    self._found(
                        "said", f"{event_id} of {handle} is a dead letter ({letter.reason}), and nobody said so"
                    )

    def _turns_of(self, handle: str, event_id: str) -> set[str]:
        turns = self._world.outside.turns.items()
        return {turn_id for turn_id, turn in turns if turn.handle == handle and event_id in turn.events}

    def _check_effects(self) -> None:
        """What has reached outside is not begun anew, unless the ledger could not be told of it, or not be asked."""
        unwritten = self._reports.named("ledger_write_failed", "id") | self._reports.named("ledger_unreadable", "id")
        unwritten_turns = self._reports.named("ledger_write_failed", "turns")
        for handle, event_id in self._world.broker.triggers:
            acted = self._turns_of(handle, event_id) & self._world.outside.acted_turns
            if len(acted) > 1 and event_id not in unwritten and not acted & unwritten_turns:
                self._found("effects", f"{sorted(acted)} have all acted for {event_id} of {handle}")

    def _check_answers(self) -> None:
        """Of what the engine itself returns the answer to, the completions are the answers.

        A ledger that cannot be asked lets work be done twice, which the engine says of each.
        """
        unsure = self._reports.named("turn_completion_publish_failed", "turn")
        unread = self._reports.named("ledger_unreadable", "id")
        answered: dict[tuple[str, str], list[str]] = {}
        for turn_id, body in self._world.broker.completed.items():
            turn = self._world.outside.turns.get(turn_id)
            if turn is None or turn.reply is not Reply.ENGINE or body.decision != "done" or turn_id in unsure:
                continue
            for event_id in turn.events:
                answered.setdefault((turn.handle, event_id), []).append(turn_id)
        for (handle, event_id), turns in answered.items():
            if len(turns) > 1 and event_id not in unread:
                self._found("answers", f"{event_id} of {handle} is answered by {turns}")

    def _check_asks(self) -> None:
        """Each ask whose work is done is closed: by the turn that answered it, or that took its colleague's answer."""
        for (handle, event_id), event in self._world.broker.triggers.items():
            if not runs_turn(event):
                continue
            channel_id = trigger_of(handle, [event], self._world.sources, headroom=0).answers_channel
            if not channel_id or not self._recorded(handle, event_id):
                continue
            record = self._world.buckets[CHANNELS.name].live(f"channel.{key_token(channel_id)}")
            status = None if record is None else decode_record(Channel, record.value).status
            if status is not ChannelStatus.CLOSED and not self._waits(handle, event_id):
                self._found("asks", f"{handle} has worked {event_id}, and {channel_id} is {status}")

    def _waits(self, handle: str, event_id: str) -> bool:
        """Whether the turn asked somebody itself: the answer to that wakes another, which owes this one."""
        completed = self._world.broker.completed
        return any(completed[turn_id].asks for turn_id in self._turns_of(handle, event_id) if turn_id in completed)

    def _check_notes(self) -> None:
        """Who was told that his note is taken hears which round read it, or that none did; once, whoever says it."""
        lost = self._reports.named("phase_telemetry_publish_failed", "turn")
        lost_by = self._reports.named("agent_turn_steered_lost", "seat")
        for note_id, turn_id in self._world.outside.accepted_notes.items():
            told = self._world.broker.steered.get(note_id, set())
            excused = turn_id in lost or self._world.outside.turns[turn_id].handle in lost_by
            if len(told) != 1 and not (excused and not told):
                self._found("notes", f"what became of {note_id} to turn {turn_id} is told {len(told)} times")

    def _check_counters(self) -> None:
        organization = self._world.company.organization
        for handle in HANDLES:
            seat = organization.agent_seat_by_handle(handle)
            assert seat is not None
            self._check_counter(agent_scope(seat.agent_id or ""), {handle})
        self._check_counter("org", {*HANDLES})

    def _check_counter(self, scope: str, handles: set[str]) -> None:
        record = self._world.buckets[BUDGETS.name].live(scope_key(scope))
        counted = 0 if record is None else decode_record(BudgetRecord, record.value).month.used
        all_of_it = sum(kept.tokens for kept in self._world.log.replies.values() if kept.handle in handles)
        if counted != all_of_it:
            self._found("counters", f"{scope} counts {counted} of {all_of_it}")

    def _recorded(self, handle: str, key: str) -> bool:
        return self._world.buckets[LEDGER.name].live(f"{key_token(handle)}.{key_token(key)}") is not None

    def _found(self, rule: Rule, what: str) -> None:
        self._world.findings.add(rule, what)
