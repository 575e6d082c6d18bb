"""Where a seat may run, as the company's document says."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.base.errors import ConfigError
from crewlet.config import load_company
from crewlet.org import SeatPlacement


def placed(folder: Path, placement: str, kind: str = "agent") -> SeatPlacement:
    contact = "" if kind == "agent" else ", contact: {crewlet_operator_id: ann}"
    file = folder / "company.yaml"
    file.write_text(f"name: Acme\nroles: [{{name: ceo, kind: {kind}{contact}, placement: {placement}}}]\n")
    seat = load_company(file).organization.seat("ceo")
    assert seat is not None
    return seat.placement


def test_a_seat_that_says_nothing_may_run_anywhere(tmp_path: Path) -> None:
    assert placed(tmp_path, "{}") == SeatPlacement()


def test_a_node_and_labels_narrow_together(tmp_path: Path) -> None:
    found = placed(tmp_path, "{node: n1, labels: {zone: b, gpu: 'yes'}}")

    assert found == SeatPlacement("n1", (("gpu", "yes"), ("zone", "b")))


@pytest.mark.parametrize(
    ("placement", "kind", "path"),
    [
        ("{nodes: n1}", "agent", "roles[0].placement.nodes"),
        ("{labels: {gpu: true}}", "agent", "roles[0].placement.labels.gpu"),
        ("{node: n1}", "human", "roles[0].placement"),
    ],
)
def test_what_cannot_be_a_placement_is_refused_at_its_path(
    tmp_path: Path, placement: str, kind: str, path: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        placed(tmp_path, placement, kind)

    assert path in [problem.path for problem in caught.value.problems]
