"""Finding a colleague, and learning how to reach them."""

from __future__ import annotations

import pytest

from crewlet.base.fence import OpenFence
from crewlet.base.trace import Trace
from crewlet.tools import CallContext, Colleague, Hint, LookupColleague

CONTEXT = CallContext(handle="ceo", turn_id="t", work_key="w", fence=OpenFence(), trace=Trace("0" * 32, "0" * 16))
EVERYBODY = [
    Colleague(handle="ceo", name="Chief Executive", unit="Board", lead_of=("Board",), goal="Lead the company"),
    Colleague(handle="cto", name="Chief Technology Officer", unit="Engineering", lead_of=("Engineering",)),
    Colleague(handle="backend", name="Backend Developer", unit="Engineering", responsibilities=("payment service",)),
    Colleague(
        handle="anna",
        name="Anna Blum",
        kind="human",
        role="Accountant",
        unit="Finance",
        manager="ceo",
        availability="Mondays",
        contact="Slack U123",
    ),
]


class Company:
    def colleagues(self) -> list[Colleague]:
        return EVERYBODY


async def looked_up(query: object = "") -> list[str]:
    result = await LookupColleague(Company()).call({"query": query}, CONTEXT)
    return [line.split(":")[0] for line in result.text.splitlines() if line.startswith("@")]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("cto", "@cto"),
        ("@CTO", "@cto"),
        ("Anna Blum", "@anna"),
        ("accountant", "@anna"),
        ("Finance", "@anna"),
        ("developer", "@backend"),
        ("who does the payment service", "@backend"),
    ],
)
async def test_a_colleague_is_found_by_any_of_what_is_known(query: str, first: str) -> None:
    assert (await looked_up(query))[0] == first


async def test_a_unit_finds_its_members_and_its_lead() -> None:
    assert await looked_up("engineering") == ["@backend", "@cto"]


async def test_an_empty_query_lists_everybody() -> None:
    assert await looked_up() == ["@anna", "@backend", "@ceo", "@cto"]


async def test_a_person_is_described_with_how_to_reach_them() -> None:
    result = await LookupColleague(Company()).call({"query": "anna"}, CONTEXT)

    assert result.text == (
        "@anna: Anna Blum (Accountant), a person\n"
        "  Unit: Finance\n"
        "  Manager: @ceo\n"
        "  Availability: Mondays\n"
        "  Reach them: Slack U123"
    )


async def test_whoever_asks_is_told_which_one_they_are() -> None:
    result = await LookupColleague(Company()).call({"query": "ceo"}, CONTEXT)

    assert result.text.startswith("@ceo: Chief Executive, an agent, that is you\n")


async def test_nobody_is_an_answer_and_no_error() -> None:
    result = await LookupColleague(Company()).call({"query": "zzz"}, CONTEXT)

    assert not result.is_error
    assert result.text == "Nobody matches 'zzz'. An empty query lists everybody."


async def test_a_query_that_is_no_text_is_an_error_for_the_model() -> None:
    assert (await LookupColleague(Company()).call({"query": 7}, CONTEXT)).is_error


async def test_a_big_company_is_shown_in_part_and_says_so() -> None:
    class Crowd:
        def colleagues(self) -> list[Colleague]:
            return [Colleague(handle=f"dev-{n:03}", name=f"Dev {n}") for n in range(50)]

    result = await LookupColleague(Crowd()).call({"query": "dev"}, CONTEXT)

    assert result.text.endswith("(30 more match; ask for something narrower.)")


def test_looking_up_is_annotated_as_harmless() -> None:
    assert LookupColleague(Company()).row.annotations.read_only is Hint.YES
