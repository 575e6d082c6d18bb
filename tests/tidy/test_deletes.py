"""What cannot be undone has one place that does it."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.tree import source_modules

# What carries the verb out, and what tests of it ship with.
_CARRIERS = ("backends/", "testing/")


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
