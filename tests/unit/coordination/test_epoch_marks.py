"""What a counter says of the tenure before: only what was told of that very tenure."""

from __future__ import annotations

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination.records.epochs import Epochs
from crewlet.coordination.slots import EPOCHS
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time

SEAT = "seat:ceo"


@pytest.fixture
async def epochs() -> Epochs:
    return Epochs(MemoryRecordStore(MemoryBucket(EPOCHS, VirtualClock())))


async def test_a_release_that_comes_after_the_next_claim_says_nothing_of_that_claims_tenure(epochs: Epochs) -> None:
    """The tenure lapsed on the way, so what its holder left behind is unknown, and the next one is not over yet."""
    await epochs.mint(SEAT, claim="first", preferred="")
    second = await epochs.mint(SEAT, claim="second", preferred="")

    await epochs.mark_released(SEAT, epoch=1)
    third = await epochs.mint(SEAT, claim="third", preferred="")

    assert (second.epoch, third.epoch) == (2, 3)
    assert (second.after_lapse, third.after_lapse) == (True, True)


async def test_a_release_that_comes_in_time_is_said_of_its_own_epoch(epochs: Epochs) -> None:
    first = await epochs.mint(SEAT, claim="first", preferred="")

    await epochs.mark_released(SEAT, epoch=first.epoch)
    second = await epochs.mint(SEAT, claim="second", preferred="")

    assert not second.after_lapse


async def test_a_gap_is_clean_only_behind_a_tenure_that_was_released(epochs: Epochs) -> None:
    first = await epochs.mint(SEAT, claim="first", preferred="")
    await epochs.mint(SEAT, claim="gap", preferred="")
    await epochs.mark_gap(SEAT, claim="gap")
    behind_a_lapse = await epochs.mint(SEAT, claim="third", preferred="")

    await epochs.mark_released(SEAT, epoch=behind_a_lapse.epoch)
    await epochs.mint(SEAT, claim="another gap", preferred="")
    await epochs.mark_gap(SEAT, claim="another gap")
    behind_a_release = await epochs.mint(SEAT, claim="fifth", preferred="")

    assert first.epoch == 1
    assert (behind_a_lapse.after_lapse, behind_a_release.after_lapse) == (True, False)
