"""Promises about a store that does not answer: nothing taken back, nothing lost, nothing called a refusal."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from crewlet.base.errors import Fenced, Unavailable
from crewlet.coordination import COMPANY_SCOPE, Ceilings, SeatShareMissing
from crewlet.testing.contracts.budget_rig import SEAT, BudgetProcess, BudgetRig
from crewlet.testing.contracts.contract import Contract

__all__ = ["BudgetHalves", "BudgetOutages"]

_BOTH = (COMPANY_SCOPE, SEAT)


class BudgetOutages(Contract):
    """A charge that is hidden by an outage is counted after it, once."""

    @pytest.mark.spec("C-010", "C-011")
    async def test_an_outage_is_told_as_an_outage(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await budgets.records.cut(process.link)

        with pytest.raises(Unavailable):
            await process.charge(10, company=Ceilings(day=1))
        with pytest.raises(Unavailable):
            await process.refuse(company=Ceilings(day=0))
        with pytest.raises(Unavailable):
            await process.spent()

    async def test_what_never_left_is_counted_once_the_store_answers(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await budgets.records.cut(process.link)
        with pytest.raises(Unavailable):
            await process.charge(10)

        await budgets.records.mend(process.link)
        await budgets.until(lambda: len(budgets.written) == 2, what="both writes")

        assert [await process.used(scope) for scope in _BOTH] == [(10, 10, 10), (10, 10, 10)]

    async def test_what_landed_unheard_is_counted_once(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1)
        budgets.records.cut_after_write(process.link)
        with pytest.raises(Unavailable):
            await process.charge(10, number=2, company=Ceilings(day=5))

        await budgets.records.mend(process.link)
        verdict = await process.charge(10, number=2, company=Ceilings(day=500))

        assert not verdict.admitted
        assert [await process.used(scope) for scope in _BOTH] == [(11, 11, 11), (11, 11, 11)]

    async def test_a_write_that_lands_long_after_is_counted_once(self, budgets: BudgetRig) -> None:
        process, other = await budgets.process(), await budgets.process()
        await process.charge(1)
        budgets.records.withhold(process.link)
        with pytest.raises(Unavailable):
            await process.charge(10, number=2)

        await budgets.records.deliver(process.link)
        await process.charge(10, number=2)
        await other.charge(100, lane="other")

        assert [await process.used(scope) for scope in _BOTH] == [(111, 111, 111), (111, 111, 111)]

    async def test_a_reply_that_was_lost_is_read_back(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1)
        budgets.records.lose_reply(process.link)

        verdict = await process.charge(10, number=2)

        assert verdict.admitted
        assert [await process.used(scope) for scope in _BOTH] == [(11, 11, 11), (11, 11, 11)]

    async def test_what_waits_is_counted_in_the_order_in_which_it_came(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        process.store.refuse(COMPANY_SCOPE)
        for number in range(1, 4):
            with pytest.raises(Unavailable):
                await process.charge(10, number=number)

        process.store.let(COMPANY_SCOPE)
        await process.charge(10, number=4)

        assert [await process.used(scope) for scope in _BOTH] == [(40, 40, 40), (40, 40, 40)]

    async def test_a_retry_asks_the_fence_first(self, budgets: BudgetRig) -> None:
        process, asked = await budgets.process(), list[str]()

        def check() -> None:
            asked.append("fence")
            raise Fenced("the seat moved")

        await process.charge(1, check=check)
        first = [*asked]
        process.store.refuse(COMPANY_SCOPE)
        with pytest.raises(Unavailable):
            await process.charge(10, number=2, check=check)
        await budgets.until(lambda: bool(asked), what="a retry")
        process.store.let(COMPANY_SCOPE)
        await process.charge(5, lane="other")

        assert first == []
        assert [await process.used(scope) for scope in _BOTH] == [(6, 6, 6), (6, 6, 6)]

    async def test_what_landed_before_the_seat_moved_is_answered(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1)
        budgets.records.cut_after_write(process.link)

        def check() -> None:
            raise Fenced("the seat moved")

        with pytest.raises(Unavailable):
            await process.charge(10, number=2, agent="", check=check)
        await budgets.records.mend(process.link)

        assert (await process.charge(10, number=2, agent="", check=check)).admitted
        assert await process.used() == (11, 11, 11)


class BudgetHalves(Contract):
    """What happens between the company's write and the seat's."""

    @pytest.mark.spec("C-177", "C-178")
    async def test_the_seats_missing_share_is_named_and_logged(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1)
        process.store.refuse(SEAT)

        with capture_logs() as logs, pytest.raises(SeatShareMissing) as caught:
            await process.charge(10, number=2)

        assert (caught.value.scope, caught.value.tokens) == (SEAT, 10)
        (said,) = [line for line in logs if line["event"] == "coord_kv_budget_spend_uncounted"]
        assert (said["scope"], said["tokens"], said["lane"], said["number"]) == (SEAT, 10, "turn", 2)

    @pytest.mark.spec("C-177", "C-180")
    async def test_nothing_is_taken_back_and_the_company_stays_exact(self, budgets: BudgetRig) -> None:
        process, successor = await budgets.process(), await budgets.process()
        await process.charge(1)
        process.store.refuse(SEAT)
        with pytest.raises(SeatShareMissing):
            await process.charge(10, number=2)

        verdict = await successor.charge(5, lane="other", company=Ceilings(day=15), seat=Ceilings(day=6))

        assert [await process.used(scope) for scope in _BOTH] == [(16, 16, 16), (6, 6, 6)]
        assert [each.scope for each in verdict.refusals] == [COMPANY_SCOPE]

    async def test_the_seats_share_is_counted_once_its_record_can_be_written(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        process.store.refuse(SEAT)
        with pytest.raises(SeatShareMissing):
            await process.charge(10)

        process.store.let(SEAT)
        await budgets.until(lambda: len(budgets.written) == 2, what="the seat's write")

        assert [await process.used(scope) for scope in _BOTH] == [(10, 10, 10), (10, 10, 10)]

    @pytest.mark.spec("C-179")
    async def test_a_caller_that_hangs_up_between_the_two_leaves_no_half(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        let_go = process.store.hold(SEAT)
        charge = budgets.tasks.start("charge", process.charge(10))
        await budgets.until(lambda: process.store.attempts == 2, what="a seat's write under way")

        charge.cancel()
        await asyncio.wait([charge])
        let_go()
        await process.budgets.close()

        assert charge.cancelled()
        assert [(await budgets.stored(scope)).day.used for scope in _BOTH] == [10, 10]

    async def test_a_caller_that_hangs_up_at_once_has_spent_it_all_the_same(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        let_go = process.store.hold(COMPANY_SCOPE)
        charge = budgets.tasks.start("charge", process.charge(10))
        await budgets.until(lambda: process.store.attempts == 1, what="a company's write under way")

        charge.cancel()
        await asyncio.wait([charge])
        let_go()
        await process.budgets.close()

        assert [(await budgets.stored(scope)).day.used for scope in _BOTH] == [10, 10]

    @pytest.mark.spec("C-181")
    async def test_spend_offered_again_counts_the_seats_share_alone(self, budgets: BudgetRig) -> None:
        dead, again = await budgets.process(), await budgets.process()
        dead.store.refuse(SEAT)
        with pytest.raises(SeatShareMissing):
            await dead.post_charge(10)

        await again.post_charge(10, lane="resumed", seat_alone=True)

        assert [await again.used(scope) for scope in _BOTH] == [(10, 10, 10), (10, 10, 10)]

    async def test_what_a_closing_process_could_not_count_is_logged(self, budgets: BudgetRig) -> None:
        process: BudgetProcess = await budgets.process()
        process.store.refuse(COMPANY_SCOPE)
        with pytest.raises(Unavailable):
            await process.charge(10)

        with capture_logs() as logs:
            await process.budgets.close()

        (said,) = [line for line in logs if line["event"] == "coord_kv_budget_spend_uncounted"]
        assert (said["scope"], said["tokens"]) == (COMPANY_SCOPE, 10)
        with pytest.raises(Unavailable):
            await process.charge(10)
