"""A script is checked whole when it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.base.errors import ConfigError
from crewlet.llm import load_script, parse_script


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("replies: [{say: hi, sya: hi}]", "replies[0].sya"),
        ("replies: [{say: hi, when: {seats: ceo}}]", "replies[0].when.seats"),
        ("replies: [{say: hi, when: {round: one}}]", "replies[0].when.round"),
        ("replies: [{say: hi}, {when: {seat: ceo}}]", "replies[1]"),
        ("replies: [{say: hi, when: {text: '('}}]", "replies[0].when.text"),
        ("replies: [{say: 'hi {nobody}'}]", "replies[0].say"),
        ("replies: [{call: [{tool: t, with: {a: [{b: '{nobody}'}]}}]}]", "replies[0].call[0].with.a[0].b"),
        ("replies: [{say: hi, fail: {kind: server}}]", "replies[0].fail"),
        ("replies: [{fail: {kind: bored}}]", "replies[0].fail.kind"),
        ("replies: [{call: [{tool: ''}]}]", "replies[0].call[0].tool"),
        ("- say: hi", ""),
    ],
)
def test_what_is_wrong_is_named_by_its_place(text: str, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_script(text)

    assert [problem.path for problem in caught.value.problems] == [path]


def test_a_misspelt_key_is_told_with_what_was_meant() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_script("replys: []", file="offline.yaml")

    assert str(caught.value) == "offline.yaml: replys: unknown key (did you mean `replies`?)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("replies: 5", "replies: must be a list (begin each entry with `- `)"),
        ("replies: [{say: [1]}]", "replies[0].say: must be text (put the value in quotes)"),
        ("replies: [{when: 3}]", "replies[0].when: must be a mapping of `key: value` lines"),
    ],
)
def test_a_value_of_another_kind_is_told_in_the_words_of_yaml(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_script(text, file="offline.yaml")

    assert str(caught.value) == f"offline.yaml: {said}"


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_script("replies: [{say: '{a}'}, {say: '{b}'}]")

    assert [problem.path for problem in caught.value.problems] == ["replies[0].say", "replies[1].say"]


def test_the_line_of_broken_yaml_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_script("replies:\n  - say: [\n", file="offline.yaml")

    assert str(caught.value).startswith("offline.yaml:3: ")


def test_a_named_group_is_a_placeholder() -> None:
    script = parse_script("replies: [{when: {text: 'for (?P<who>.+)'}, say: 'hi {who}'}]")

    assert script.replies[0].say == "hi {who}"


def test_an_empty_file_is_a_script_of_defaults() -> None:
    assert parse_script("").replies == ()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml"):
        load_script(tmp_path / "gone.yaml")
