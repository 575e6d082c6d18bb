"""Brokers for the contracts, started where a case first asks for them; three members in full only when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import cast

import pytest

from crewlet.testing.clusters import Cluster, running_cluster


@pytest.fixture(scope="session")
def one_broker() -> Iterator[Cluster]:
    with running_cluster(1) as broker:
        yield broker


@pytest.fixture(scope="session")
def three_members() -> Iterator[Cluster]:
    with running_cluster(3) as cluster:
        yield cluster


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of three members' cases, leave those with a change of leader in the middle; ``-m cluster`` runs all."""
    if "cluster" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("cluster") and not _is_disturbed(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _is_disturbed(item: pytest.Item) -> bool:
    assert isinstance(item, pytest.Function)
    promise = cast("FunctionType", item.function)  # pyright: ignore[reportUnknownMemberType] - pytest says no more
    return "disturb" in promise.__code__.co_names
