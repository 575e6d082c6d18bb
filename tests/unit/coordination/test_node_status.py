"""A node's status: what a report becomes on its way into the record."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from crewlet.base import limits
from crewlet.coordination import STATUS, NodeStatus
from crewlet.coordination.records.node_status import reported

REPORT = NodeStatus(
    node="north",
    epoch=7,
    revision_id="r7",
    status="error",
    posture="isolated",
    reported_at=datetime(2030, 1, 1, tzinfo=UTC),
)


@pytest.mark.parametrize(("error", "kept"), [("a" * 2001, "a" * 2000), ("a" + "ä" * 1000, "a" + "ä" * 999), ("ä", "ä")])
def test_an_error_is_cut_to_two_thousand_bytes_of_whole_characters(error: str, kept: str) -> None:
    assert reported(None, replace(REPORT, error=error)).error == kept
    assert limits.STATUS_ERROR_MAX_BYTES == 2000


def test_a_report_says_nothing_of_the_last_but_what_only_a_newer_build_knows() -> None:
    standing = replace(REPORT, error="broken", unknown={"mood": "good"})

    report = reported(standing, replace(REPORT, epoch=8))

    assert report == replace(REPORT, epoch=8, unknown={"mood": "good"})


@pytest.mark.spec("C-128")
def test_a_status_lives_for_four_reports() -> None:
    assert STATUS.age_s == 4 * 15.0
