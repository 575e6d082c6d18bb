"""How a haul is collected: bounds that no construction gets past."""

from __future__ import annotations

import pytest

from crewlet.base import limits
from crewlet.base.errors import ConfigError
from crewlet.config import company_of, source_of
from crewlet.queue import BatchOptions


@pytest.mark.spec("E-064")
@pytest.mark.parametrize(("asked", "granted"), [(-1.0, 0.0), (12.5, 12.5), (61.0, 60.0)])
def test_a_linger_is_cut_to_its_bound_on_every_construction(asked: float, granted: float) -> None:
    """A haul and one turn have to fit into the ack window, whoever asks."""
    assert BatchOptions(linger_s=asked).linger_s == granted
    assert limits.MAX_LINGER_SECONDS == 60


@pytest.mark.spec("E-064")
def test_the_company_document_refuses_a_linger_beyond_the_same_bound() -> None:
    """Whoever writes it is told, rather than cut in silence."""
    document = f"name: Acme\nnotification_coalesce_window_seconds: {limits.MAX_LINGER_SECONDS + 1}\n"

    with pytest.raises(ConfigError, match=str(limits.MAX_LINGER_SECONDS)):
        company_of(source_of(document, "company.yaml"))


@pytest.mark.parametrize(("asked", "granted"), [(0, 1), (20, 20), (101, 100)])
def test_a_cap_is_cut_to_its_bound(asked: int, granted: int) -> None:
    """At least the message that began the haul, at most what a digest can hold."""
    assert BatchOptions(max_events=asked).max_events == granted
