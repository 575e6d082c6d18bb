"""What text from a tool server looks like before anybody reads it."""

from __future__ import annotations

import json

import pytest

from crewlet.tools.clean_text import Cleaner, clipped


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\r\nb\tc\n", "a\nb\tc\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("nul\x00 bell\x07 del\x7f c1\x9b", "nul bell del c1"),
        ("half \ud83d of one", "half \N{REPLACEMENT CHARACTER} of one"),
        ("Grüße, 世界 🎉", "Grüße, 世界 🎉"),
    ],
)
def test_control_characters_go_and_all_else_stays(raw: str, clean: str) -> None:
    assert Cleaner()(raw) == clean


def test_a_secret_is_replaced_wherever_it_stands() -> None:
    assert Cleaner({"s3cret"})("is3cret, s3cret") == "i[redacted], [redacted]"


def test_a_secret_that_begins_another_leaves_no_rest() -> None:
    assert Cleaner({"token", "token-of-the-ceo"})("token-of-the-ceo") == "[redacted]"


def test_a_secret_is_found_as_json_writes_it() -> None:
    key = '-----BEGIN "KEY"-----\nabc\n'

    assert Cleaner({key})(json.dumps({"key": key})) == '{"key": "[redacted]"}'


def test_a_secret_broken_by_control_characters_is_found() -> None:
    assert Cleaner({"s3cret"})("s3\x00cret") == "[redacted]"


def test_values_too_short_to_be_secrets_stay() -> None:
    assert Cleaner({"", "1", "yes"})("yes, 1 of them") == "yes, 1 of them"


def test_clipping_keeps_whole_characters() -> None:
    assert clipped("ééé", 5) == "éé"
    assert clipped("abc", 3) == "abc"
