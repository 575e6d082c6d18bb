"""The table of slots, and names that become keys."""

from __future__ import annotations

import pytest

from crewlet.base import limits
from crewlet.coordination import LEDGER, SLOTS, Slot, checked_key, checked_pattern, key_token
from crewlet.coordination.slots import FIRES


def test_each_slot_stands_once_in_the_table() -> None:
    assert len({slot.name for slot in SLOTS}) == len(SLOTS)


_DAY_S = 24 * 3600.0


def test_the_ages_are_those_of_the_table() -> None:
    assert {slot.name: slot.age_s for slot in SLOTS} == {
        "leases": 45.0,
        "duties": 3 * 3600.0,
        "epochs": None,
        "config": None,
        "status": 60.0,
        "ledger": 7 * _DAY_S,
        "claims": 1800.0,
        "rate": 10.0,
        "cooldowns": _DAY_S,
        "budgets": 32 * _DAY_S,
        "channels": None,
        "fires": 7 * _DAY_S,
        "rebases": 30 * _DAY_S,
        "sandbox_runs": None,
        "secrets": None,
        "integrations": None,
        "mailboxes": None,
        "follows": 90 * _DAY_S,
        "custody": 32 * _DAY_S,
        "objects": None,
        "positions": None,
    }


@pytest.mark.spec("C-126")
def test_the_ledger_outlasts_every_redelivery() -> None:
    """The longest way that a message can take: held for a whole ack window each time, and then made to wait."""
    horizon_s = limits.MAX_DELIVER * (limits.ACK_WAIT_S + limits.NAK_BACKOFF_MAX_S)

    assert LEDGER.age_s == 7 * _DAY_S
    assert horizon_s < 7 * _DAY_S


@pytest.mark.spec("C-126", "C-131", "S-113")
@pytest.mark.parametrize("slot", [LEDGER, FIRES], ids=lambda slot: slot.name)
def test_what_a_fire_is_known_by_outlasts_the_time_in_which_it_could_be_caught_up(slot: Slot) -> None:
    assert slot.age_s == 7 * _DAY_S
    assert limits.FIRE_CATCHUP_MAX_S < 7 * _DAY_S


def test_a_plain_name_stands_for_itself() -> None:
    assert key_token("019c-Ab_9") == "019c-Ab_9"


@pytest.mark.parametrize("name", ["a.b", "a b", "", "=x", "*", ">", "ä", "x" * 81])
def test_any_other_name_becomes_one_token_of_a_key(name: str) -> None:
    token = key_token(name)

    assert token != name
    assert "." not in token
    assert checked_key(token) == token


@pytest.mark.parametrize("key", ["seat." + "a" * 1100, "seat." + ".".join("a" * 600)])
def test_a_key_too_long_for_a_line_of_the_brokers_protocol_is_refused(key: str) -> None:
    for check in (checked_key, checked_pattern):
        with pytest.raises(ValueError, match="1024"):
            check(key)


def test_two_names_never_share_a_token() -> None:
    names = ["a.b", "a b", "a:b", "a-b", key_token("a.b")]

    assert len({key_token(name) for name in names}) == len(names)
