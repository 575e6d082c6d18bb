"""What cannot be undone has one place that does it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.tree import source_modules

# What carries the verb out, and what tests of it ship with.
_CARRIERS = ("backends/", "testing/")

# Whoever removes records of a bucket that no clock empties, by the verb of its class, as ``<receiver>.<verb>``.
_REMOVERS = {
    "channels.remove": {"a2a/channel_sweep.py"},
    "mailboxes.forget": {"duties/mailbox_retirement.py"},
    "integrations.forget": set[str](),
    "secrets.unset": set[str](),
    "runs.settle": {"duties/mailbox_retirement.py"},
}
# Where a record store's own verb is called: the classes above, and what a lapse, a lift or a swept claim removes.
_RECORDS = {
    "coordination/kv_leases.py",
    "coordination/lease_claim.py",
    "coordination/records/channels.py",
    "coordination/records/integrations.py",
    "coordination/records/mailboxes.py",
    "coordination/records/positions.py",
    "coordination/records/sealed_secrets.py",
    "coordination/records/stored.py",
}


@pytest.mark.spec("S-137")
def test_nothing_but_a_retirement_deletes_a_subscription() -> None:
    callers = {
        module.name
        for module in source_modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "delete_subscription"
        and not module.name.startswith(_CARRIERS)
    }

    assert callers == {"duties/mailbox_retirement.py"}


@pytest.mark.spec("C-146")
@pytest.mark.parametrize(("verb", "callers"), _REMOVERS.items(), ids=_REMOVERS)
def test_a_record_that_no_clock_removes_is_removed_by_who_decides_over_it(verb: str, callers: set[str]) -> None:
    owner, _, called = verb.partition(".")

    found = {module for module, receiver, name in _calls() if name == called and receiver.endswith(owner)}

    assert found == callers


@pytest.mark.spec("C-146")
def test_records_are_deleted_by_the_class_that_knows_them_alone() -> None:
    assert {
        module for module, receiver, name in _calls() if name == "delete" and receiver.endswith("store")
    } == _RECORDS


def _calls() -> Iterator[tuple[str, str, str]]:
    """Each call of a method, but for the carriers': the module, the receiver's last name, the method."""
    for module in source_modules():
        if module.name.startswith(_CARRIERS):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield module.name, ast.unparse(node.func.value).rpartition(".")[2].lower(), node.func.attr
