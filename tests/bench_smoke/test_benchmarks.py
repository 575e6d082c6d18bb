"""The benchmarks run, and what is committed of them is whole; how fast anything is, is not tested here."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import table
from benchmarks.suite import MACHINE, MEASUREMENTS

ROOT = Path(__file__).resolve().parents[2]
FIELDS = ["name", "value", "unit", "floor", "floor_name", "peer", "peer_name", "ratio", "bound", "ok"]
TITLES = {name: what for each in MEASUREMENTS for name, what in each.figures.items()}
MAY_SHRINK = {"per_seat_kib", "idle_inboxes_broker_cpu_percent", "held_seats_broker_cpu_percent"}
"""A difference of two runs, and a clock with ticks of 10 ms; with a few seats they may be anything."""


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    file = tmp_path_factory.mktemp("bench") / "results.json"
    command = [sys.executable, "-m", "benchmarks", "--small", "--output", str(file)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.timeout(480)
def test_a_small_run_measures_every_figure(small_run: list[dict[str, Any]]) -> None:
    measured = {each["name"]: each["value"] for each in small_run}

    assert sorted(measured) == sorted([*TITLES, *MACHINE])
    assert [name for name, value in measured.items() if not math.isfinite(value)] == []
    assert [name for name, value in measured.items() if value <= 0 and name not in MAY_SHRINK] == []


@pytest.mark.slow
@pytest.mark.timeout(480)
def test_results_have_the_agreed_shape(small_run: list[dict[str, Any]]) -> None:
    for each in small_run:
        assert list(each) == FIELDS
        assert each["ok"] == (each["bound"] is None or each["value"] <= each["bound"])
        assert (each["floor"] is None) == (each["floor_name"] is None) == (each["ratio"] is None)
        assert each["peer"] is None or (each["peer_name"] and each["peer"] > 0)
        assert each["floor"] is None or each["floor"] > 0


@pytest.mark.slow
@pytest.mark.timeout(480)
def test_a_peer_without_a_value_is_told_to_be_absent(small_run: list[dict[str, Any]]) -> None:
    peers = [each for each in small_run if each["peer_name"] is not None]

    assert peers
    for each in peers:
        assert (each["peer"] is None) == each["peer_name"].endswith(": not installed")


def test_the_kept_results_are_of_every_figure() -> None:
    assert sorted(each.name for each in table.load()) == sorted([*TITLES, *MACHINE])


@pytest.mark.spec("S-135")
def test_a_mailbox_costs_to_make_what_it_costs_a_bare_client_or_a_third_more() -> None:
    """By the kept results: 3,000 mailboxes on one broker, by the engine and by as many plain requests."""
    [made] = [each for each in table.load() if each.name == "mailboxes_made_s"]

    assert made.floor is not None
    assert made.floor_name is not None
    assert made.floor_name.startswith("nats-py")
    assert made.value <= 1.3 * made.floor


def test_the_readme_has_a_line_for_every_figure() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()

    assert [what for what in TITLES.values() if not any(line.startswith(f"| {what} |") for line in lines)] == []
