"""What is committed names no machine, no registry and no address that a lock could carry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, texts

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
# Taken apart, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.])/" + r"(?:work|root|tmp/probe)/")
REGISTRY = re.compile(r"(?:py" + r"pi\.|python" + r"hosted\.|npm" + r"js\.|/sim" + r"ple/)")
ADDRESS = re.compile(r"://|file:|--(?:extra-)?index|--find-links|--trusted-host|@ |\b[\w-]+\.(?:com|dev|io|net|org)\b")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_the_lock_carries_no_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")

    assert [line for line in text.splitlines() if ADDRESS.search(line)] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_locked_package_is_pinned_and_hashed(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    packages = re.split(r"\n(?=[a-zA-Z0-9])", text)[1:]

    assert packages
    assert [package.splitlines()[0] for package in packages if not re.match(r"[\w.\[\],-]+==\S+ ", package)] == []
    assert [package.splitlines()[0] for package in packages if "--hash=sha256:" not in package] == []


def test_the_engine_its_build_and_the_tools_are_locked() -> None:
    assert [lock.name for lock in LOCKS] == ["bench.txt", "build.txt", "dev.txt", "lock.txt"]


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://example.test/index",
        "--find-links wheels",
        "thing @ file:///wheels/thing.whl",
        "    # from files.example.org",
    ],
)
def test_an_address_would_be_found(line: str) -> None:
    assert ADDRESS.search(line)


def test_no_file_names_a_path_of_one_machine() -> None:
    assert [name for name, text in texts() if MACHINE_PATH.search(text)] == []


def test_no_file_names_a_package_registry() -> None:
    assert [name for name, text in texts() if REGISTRY.search(text)] == []
