"""`crewlet validate`: either file, one report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crewlet.config import company_schema, node_schema, validate_file


def _write(folder: Path, text: str) -> Path:
    path = folder / "file.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("name: A\nroles: []", "company"),
        ("name: A\nstream: {}\nroles: []", "company"),
        ("data_dir: x", "node"),
        ("stream: {}\napi: {}\nname: A", "node"),
        ("{}", "node"),
        ("name: A\nstream: {}", None),
        ("hello: world", None),
        ("- a", None),
    ],
)
def test_a_file_is_told_by_its_keys(tmp_path: Path, text: str, kind: str | None) -> None:
    assert validate_file(_write(tmp_path, text)).kind == kind


def test_a_file_that_is_neither_is_not_valid(tmp_path: Path) -> None:
    report = validate_file(_write(tmp_path, "hello: world"))

    assert not report.ok
    assert "crewlet schema" in report.problems[0].remedy


def test_a_report_is_json(tmp_path: Path) -> None:
    report = validate_file(_write(tmp_path, "name: A\nrolse: []\nroles: [{name: a}]"))

    assert json.loads(json.dumps(report.as_json())) == {
        "file": str(tmp_path / "file.yaml"),
        "kind": "company",
        "ok": False,
        "problems": [{"path": "rolse", "problem": "unknown key", "remedy": "did you mean `roles`?", "line": 2}],
        "warnings": [],
    }


def test_warnings_leave_a_file_valid(tmp_path: Path) -> None:
    path = _write(tmp_path, "name: A\nroles: [{name: a, manages: [b]}]")

    report = validate_file(path)

    assert report.ok
    assert len(report.warnings) == 1
    assert report.lines()[0].startswith(f"{path}:2: warning: roles[0].manages[0]")


def test_a_missing_file_is_a_report_too(tmp_path: Path) -> None:
    report = validate_file(tmp_path / "none.yaml")

    assert not report.ok
    assert report.kind is None


def test_a_company_needs_no_environment_and_a_node_file_does(tmp_path: Path) -> None:
    company = "name: A\nproviders: {llm: {m: {type: openai, model: x, api_keys: ['${NOT_SET}']}}}"

    assert validate_file(_write(tmp_path, company)).ok
    assert not validate_file(_write(tmp_path, "data_dir: ${DIR}")).ok
    assert validate_file(_write(tmp_path, "data_dir: ${DIR}"), {"DIR": "x"}).ok


def test_the_schemas_name_each_field_and_close_each_mapping() -> None:
    company, node = company_schema(), node_schema()

    assert company["properties"]["name"]["description"].startswith("Part of every agent's identity")
    assert company["required"] == ["name"]
    for schema in (company, node, *company["$defs"].values(), *node["$defs"].values()):
        mapping = schema["anyOf"][-1] if "anyOf" in schema else schema
        assert mapping["additionalProperties"] is False
    assert node["$defs"]["ApiSection"]["properties"]["port"]["anyOf"][0]["maximum"] == 65535
