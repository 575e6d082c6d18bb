"""docs/promises.md and the marks in the tests name the same numbers."""

from __future__ import annotations

from collections import Counter

from tests.tidy.promises import claimed, listed
from tests.tidy.tree import ROOT

DOCUMENT = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
LISTED = list(listed(DOCUMENT))
NUMBERS = {number for number, _ in LISTED}


def claims() -> dict[str, str]:
    """Each claimed number and one test file that claims it."""
    return {
        number: path.relative_to(ROOT).as_posix()
        for folder in (ROOT / "tests", ROOT / "src")
        for path in folder.rglob("*.py")
        for number in claimed(path.read_text(encoding="utf-8"))
    }


def test_every_claimed_number_has_a_line() -> None:
    assert {number: path for number, path in claims().items() if number not in NUMBERS} == {}


def test_every_line_is_claimed_by_a_test() -> None:
    assert sorted(NUMBERS - claims().keys()) == []


def test_every_number_has_one_line() -> None:
    assert [number for number, lines in Counter(number for number, _ in LISTED).items() if lines > 1] == []


def test_every_item_has_the_form_that_is_read() -> None:
    items = [line for line in DOCUMENT.splitlines() if line.startswith("- **")]

    assert len(items) == len(LISTED)


def test_a_claim_is_read_from_its_mark() -> None:
    source = '@pytest.mark.spec("E-001", "C-002")\ndef test_a() -> None: ...'

    assert list(claimed(source)) == ["E-001", "C-002"]


def test_a_line_is_read_from_the_document() -> None:
    assert list(listed("# Words\n\n- **E-001** what holds\n- no promise\n")) == [("E-001", "what holds")]
