"""YAML as people get it wrong: one sentence each, with the line and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.base import limits
from crewlet.base.errors import ConfigError, Problem
from crewlet.config import read_source, source_of


def _problem(text: str) -> Problem:
    with pytest.raises(ConfigError) as caught:
        source_of(text, "f.yaml")
    (problem,) = caught.value.problems
    return problem


def test_each_value_knows_its_line() -> None:
    source = source_of("name: x\nroles:\n  - name: a\n    manages:\n      - b\n  - name: c\n")

    assert source.values == {"name": "x", "roles": [{"name": "a", "manages": ["b"]}, {"name": "c"}]}
    assert source.lines["name"] == 1
    assert source.lines["roles"] == 2
    assert source.lines["roles[0].manages[0]"] == 5
    assert source.lines["roles[1].name"] == 6


def test_a_key_written_twice_is_refused_with_both_lines() -> None:
    problem = _problem("a:\n  b: 1\n  c: 2\n  b: 3\n")

    assert (problem.path, problem.line) == ("a.b", 4)
    assert "line 2" in problem.problem


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a:\n\t- b", 2, "spaces"),
        ("a: b: c", 1, "quotes"),
        ("a: [1, 2\nb: 3", 2, "valid YAML"),
        ("a: 'x\n", 2, "valid YAML"),
        ("- a", 1, "mapping"),
        ("just words", 1, "mapping"),
        ("a: 1\n---\nb: 2", 2, "more than one document"),
        ("1: a", 1, "quotes"),
        ("a: 1\ntrue: b", 2, "quotes"),
        ("? [a]\n: b", 1, "text"),
        ("a: &x {b: 1}\nc:\n  <<: *x", 3, "<<"),
        ("a: *x", 1, "*x"),
        ("a: &x [*x]", 1, "*x"),
        ("a: !!python/object/apply:os.system [id]", 1, "tag"),
        ("a: !custom x", 1, "tag"),
        ("a: " + "[" * 100, 1, "nested"),
        ("a: " + "[" * 5000, 1, "nest"),
        ("a: \x01", 0, "valid YAML"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_with_its_line(text: str, line: int, says: str) -> None:
    problem = _problem(text)

    assert problem.line == line
    assert says in str(problem)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~"])
def test_an_empty_file_points_to_a_start(text: str) -> None:
    assert "crewlet init" in _problem(text).remedy


def test_words_that_other_readers_take_for_values_stay_words() -> None:
    source = source_of("a: no\nb: 0600\nc: 2026-01-01\nd: 12:30\ne: on\nf: '1'\ng: 1_000")

    assert list(source.values.values()) == ["no", "0600", "2026-01-01", "12:30", "on", "1", "1_000"]


def test_plain_values_are_read() -> None:
    source = source_of("a: 1\nb: -2.5\nc: true\nd:\ne: 1e3\nf: &x [1]\ng: *x")

    assert list(source.values.values()) == [1, -2.5, True, None, 1000.0, [1], [1]]


def test_aliases_cannot_blow_a_small_file_up() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    assert f"more than {limits.DOCUMENT_MAX_VALUES}" in _problem("\n".join(lines)).problem


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: 1\nb: \xff\xfe")
    big = tmp_path / "big.yaml"
    big.write_bytes(b"#" * (limits.DOCUMENT_MAX_BYTES + 1))

    expected = {tmp_path / "none.yaml": "no such file", tmp_path: "folder", binary: ":2: is not UTF-8", big: "larger"}
    for path, says in expected.items():
        with pytest.raises(ConfigError) as caught:
            read_source(path)
        assert says in str(caught.value)
        assert str(caught.value).startswith(str(path))


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\n")

    assert read_source(path).values == {"name": "x"}


@pytest.mark.parametrize("text", ['data_dir: "a\\0b"', '"a\\0b": 1', 'args: ["x", "\\x00"]'])
def test_a_nul_character_is_refused_wherever_it_stands(text: str) -> None:
    """The operating system takes it in no path, no argument and no variable."""
    assert _problem(text).problem == "holds a NUL character"
