"""Keys stay out of what is said about a failed call."""

from __future__ import annotations

from crewlet.base import limits
from crewlet.llm.redaction import redacted


def test_a_known_key_is_taken_out_whatever_it_looks_like() -> None:
    assert redacted("denied for hunter2hunter2!", ["hunter2hunter2"]) == "denied for [key]!"


def test_what_looks_like_a_vendors_key_is_taken_out_though_nobody_knows_it() -> None:
    assert redacted("Incorrect API key provided: sk-proj-ab****wxyz.", []) == "Incorrect API key provided: [key]"


def test_a_long_text_is_cut_and_set_on_one_line() -> None:
    said = redacted("a\nb " * 1000, [])

    assert len(said) == limits.LLM_ERROR_TEXT_MAX_CHARS
    assert "\n" not in said
