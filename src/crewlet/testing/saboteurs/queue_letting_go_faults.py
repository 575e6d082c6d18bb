"""Saboteurs of the verbs of letting go, and of named holds."""

from __future__ import annotations

from crewlet.queue import Handler, Subscription
from crewlet.testing.contracts import Holds, LettingGo
from crewlet.testing.saboteurs.queue_saboteur import QueueSaboteur

__all__ = ["LETTING_GO_FAULTS"]


class QuiesceDoesNothing(QueueSaboteur):
    """A quiesced attachment goes on."""

    caught_by = LettingGo.test_a_quiesced_attachment_asks_for_nothing_and_withholds_nothing

    async def quiesce(self, subscription: Subscription) -> None: ...


class QuiesceIsADetach(QueueSaboteur):
    """A quiesce gives the attachment up."""

    caught_by = LettingGo.test_a_quiesce_leaves_the_running_handler_its_outcome

    async def quiesce(self, subscription: Subscription) -> None:
        await self.twin.detach(subscription)


class UnquiesceDoesNothing(QueueSaboteur):
    """Once quiesced, deaf for good."""

    caught_by = LettingGo.test_unquiesce_fetches_what_came_meanwhile_at_no_cost

    async def unquiesce(self, subscription: Subscription) -> None: ...


class VerbsInsistOnAnAttachment(QueueSaboteur):
    """A verb fails where nothing is attached."""

    caught_by = LettingGo.test_the_verbs_are_harmless_where_nothing_is_attached

    async def detach(self, subscription: Subscription) -> None:
        state = await self.twin.mailbox(subscription)
        assert state is not None, "there is no such mailbox"
        await self.twin.detach(subscription)


class DetachIsAQuiesce(QueueSaboteur):
    """A detach leaves the attachment where it is."""

    caught_by = LettingGo.test_after_a_detach_the_same_process_may_attach_again

    async def detach(self, subscription: Subscription) -> None:
        await self.twin.quiesce(subscription)


class DetachDestroys(QueueSaboteur):
    """A detach takes the mailbox with it."""

    caught_by = LettingGo.test_a_detach_leaves_the_mailbox_its_place_and_its_mail

    async def detach(self, subscription: Subscription) -> None:
        await self.twin.delete_subscription(subscription)


class DetachWaits(QueueSaboteur):
    """A detach waits for the handler and reports its outcome."""

    caught_by = LettingGo.test_a_detached_handlers_outcome_is_not_reported

    async def detach(self, subscription: Subscription) -> None:
        self.tasks.start("detach", self._detach(subscription))

    async def _detach(self, subscription: Subscription) -> None:
        await self.twin.quiesce(subscription)
        await self.twin.wait_idle(subscription)
        await self.twin.detach(subscription)


class CloseDoesNothing(QueueSaboteur):
    """A closed client works on."""

    caught_by = LettingGo.test_a_closed_client_works_nothing_and_its_mailboxes_stay

    async def close(self) -> None: ...


class IdleAtOnce(QueueSaboteur):
    """Nothing is waited for."""

    caught_by = LettingGo.test_wait_idle_returns_after_the_outcome_was_reported

    async def wait_idle(self, subscription: Subscription) -> None: ...


class HoldDoesNothing(QueueSaboteur):
    """Holds are not in force."""

    caught_by = Holds.test_held_mail_keeps_its_order_and_its_whole_budget

    async def hold(self, subscription: Subscription, name: str) -> None: ...


class HoldsAreNameless(QueueSaboteur):
    """One lift ends every hold."""

    caught_by = Holds.test_lifting_one_hold_leaves_the_others_in_force

    async def hold(self, subscription: Subscription, name: str) -> None:
        await self.twin.hold(subscription, "the one")

    async def lift(self, subscription: Subscription, name: str) -> None:
        await self.twin.lift(subscription, "the one")


class HoldsAreCounted(QueueSaboteur):
    """A hold that was taken twice stands until it is lifted twice."""

    caught_by = Holds.test_a_hold_taken_twice_is_lifted_once

    def _names(self) -> dict[str, int]:
        return self.__dict__.setdefault("counts", {})

    async def hold(self, subscription: Subscription, name: str) -> None:
        self._names()[name] = self._names().get(name, 0) + 1
        await self.twin.hold(subscription, name)

    async def lift(self, subscription: Subscription, name: str) -> None:
        self._names()[name] = self._names().get(name, 0) - 1
        if self._names()[name] <= 0:
            await self.twin.lift(subscription, name)


class LiftingNothingLiftsAll(QueueSaboteur):
    """A name that does not stand ends whatever does."""

    caught_by = Holds.test_lifting_what_does_not_stand_changes_nothing

    async def lift(self, subscription: Subscription, name: str) -> None:
        await self.twin.lift(subscription, "sandbox")


class HoldsNeedAnAttachment(QueueSaboteur):
    """A hold before the attach is lost."""

    caught_by = Holds.test_a_hold_taken_before_the_attach_is_in_force_from_its_first_moment

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        await self.twin.detach(subscription)
        await self.twin.subscribe(subscription, handler)


class HoldsOutliveADetach(QueueSaboteur):
    """A hold stands for the next attachment too."""

    caught_by = Holds.test_a_detach_drops_every_hold

    async def hold(self, subscription: Subscription, name: str) -> None:
        self.shared.names.add((subscription, name))
        await self.twin.hold(subscription, name)

    async def detach(self, subscription: Subscription) -> None:
        await self.twin.detach(subscription)
        for held, name in self.shared.names:
            await self.twin.hold(held, name)


class HoldsAreFleetWide(QueueSaboteur):
    """A hold stops every attachment of the mailbox."""

    caught_by = Holds.test_a_hold_is_this_attachments_alone

    async def hold(self, subscription: Subscription, name: str) -> None:
        for client in self.shared.clients:
            await client.twin.hold(subscription, name)


class UnquiesceLifts(QueueSaboteur):
    """Unquiesce ends the holds as well."""

    caught_by = Holds.test_an_unquiesce_lifts_no_hold_and_a_lift_no_quiesce

    async def unquiesce(self, subscription: Subscription) -> None:
        await self.twin.lift(subscription, "pause")
        await self.twin.unquiesce(subscription)


class HoldsCancelTheHandler(QueueSaboteur):
    """A hold ends the attachment and what it was doing."""

    caught_by = Holds.test_a_running_handler_goes_on_under_a_hold

    async def hold(self, subscription: Subscription, name: str) -> None:
        await self.twin.detach(subscription)


LETTING_GO_FAULTS: tuple[type[QueueSaboteur], ...] = (
    QuiesceDoesNothing,
    QuiesceIsADetach,
    UnquiesceDoesNothing,
    VerbsInsistOnAnAttachment,
    DetachIsAQuiesce,
    DetachDestroys,
    DetachWaits,
    CloseDoesNothing,
    IdleAtOnce,
    HoldDoesNothing,
    HoldsAreNameless,
    HoldsAreCounted,
    LiftingNothingLiftsAll,
    HoldsNeedAnAttachment,
    HoldsOutliveADetach,
    HoldsAreFleetWide,
    UnquiesceLifts,
    HoldsCancelTheHandler,
)
