"""`crewlet init`, `validate` and `schema`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from crewlet.cli import main


def test_init_writes_a_company_that_validates(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["init", "start"])

    said = capsys.readouterr().out
    assert code == 0
    assert "next: cd start && crewlet run" in said
    assert [main(["validate", f"start/{name}"]) for name in ("crewlet.yaml", "company.yaml")] == [0, 0]


def test_init_of_a_fleet_writes_a_node_file_for_each_and_says_how_to_run_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["init", "--fleet", "3", "start"])

    said = capsys.readouterr().out
    names = ["node-1.yaml", "node-2.yaml", "node-3.yaml"]
    assert code == 0
    assert all(f"run -c {name}" in said for name in names)
    assert [main(["validate", f"start/{name}"]) for name in (*names, "company.yaml")] == [0, 0, 0, 0]


@pytest.mark.parametrize(("size", "reason"), [("2", "no majority"), ("1", "no fleet"), ("6", "vote on every write")])
def test_init_of_what_is_no_fleet_is_refused_with_the_reason(
    capsys: pytest.CaptureFixture[str], size: str, reason: str
) -> None:
    code = main(["init", "--fleet", size, "start"])

    said = capsys.readouterr().err
    assert code == 1
    assert reason in said
    assert not Path("start").exists()


def test_init_overwrites_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("company.yaml").write_text("mine")

    code = main(["init", "."])

    assert code == 1
    assert "company.yaml" in capsys.readouterr().err
    assert Path("company.yaml").read_text() == "mine"
    assert [path.name for path in Path().iterdir()] == ["company.yaml"]


def test_init_into_what_is_no_folder_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("start").write_text("a file")

    code = main(["init", "start"])

    said = capsys.readouterr().err
    assert code == 1
    assert said.startswith("crewlet: start cannot be written")
    assert said.count("\n") == 1


def test_a_sound_file_is_said_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    Path("company.yaml").write_text("name: Acme\nroles: [{name: ceo}]")

    code = main(["validate", "company.yaml"])

    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    assert "a valid company document" in said.out


def test_an_unsound_file_ends_with_code_2_and_each_problem_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("company.yaml").write_text("name: Acme\nrolse: []\nmision: x\nroles: [{name: ceo}]")

    code = main(["validate", "company.yaml"])

    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert "company.yaml:2: rolse: unknown key" in said.err
    assert "company.yaml:3: mision: unknown key" in said.err


@pytest.mark.parametrize(
    ("text", "code"), [("name: Acme\nroles: [{name: ceo}]", 0), ("name: Acme\nrolse: []", 2), ("a: [", 2), (None, 2)]
)
def test_a_report_for_programs_is_json_whatever_was_found(
    capsys: pytest.CaptureFixture[str], text: str | None, code: int
) -> None:
    if text is not None:
        Path("company.yaml").write_text(text)

    ended = main(["validate", "company.yaml", "--json"])

    said = capsys.readouterr()
    report = json.loads(said.out)
    assert (ended, report["ok"], said.err) == (code, code == 0, "")
    assert [set(problem) for problem in report["problems"]] == [
        {"path", "problem", "remedy", "line"} for _ in report["problems"]
    ]
    assert bool(report["problems"]) == (code != 0)


def test_warnings_do_not_spoil_a_report_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """They stand in the report; a log line beside it would be no JSON."""
    Path("crewlet.yaml").write_text("api: {auth: {tokens: [{id: a, token: in-plain-text}]}}")
    Path("crewlet.yaml").chmod(0o644)

    ended = main(["validate", "crewlet.yaml", "--json"])

    report = json.loads(capsys.readouterr().out)
    assert (ended, report["ok"]) == (0, True)
    assert report["warnings"] != []
    assert "in-plain-text" not in json.dumps(report)


@pytest.mark.parametrize(("kind", "key"), [("company", "roles"), ("node", "stream")])
def test_a_schema_describes_its_file(capsys: pytest.CaptureFixture[str], kind: str, key: str) -> None:
    code = main(["schema", kind])

    said = capsys.readouterr().out
    schema = json.loads(said)
    assert code == 0
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert key in schema["properties"]
    references = set(re.findall(r'"\$ref": "#/\$defs/([^"]*)"', said))
    assert references == set(schema["$defs"])
