"""What the commands tell people to type is what they can type."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crewlet.cli.own_name import own_name


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "a folder" / "bin" / "crewlet"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.chdir(tmp_path / "a folder")
    monkeypatch.setattr(sys, "argv", ["bin/crewlet"])
    monkeypatch.setenv("PATH", "/nowhere")
    return path


def test_a_program_on_the_path_has_its_bare_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))

    assert own_name() == "crewlet"


@pytest.mark.parametrize(("folder", "name"), [(None, "bin/crewlet"), (Path("my-company"), "../bin/crewlet")])
@pytest.mark.usefixtures("program")
def test_a_program_elsewhere_is_named_by_the_way_to_it(folder: Path | None, name: str) -> None:
    assert own_name(seen_from=folder) == name


@pytest.mark.usefixtures("program")
def test_a_way_with_blanks_can_be_typed() -> None:
    assert own_name(seen_from=Path("/")).startswith("'")


def test_a_module_that_is_run_has_the_commands_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(program.with_name("__main__.py"))])

    assert own_name() == "crewlet"
