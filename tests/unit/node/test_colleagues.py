"""The company as its agents see it."""

from __future__ import annotations

from crewlet.node.colleagues import CompanyColleagues, CompanyLines, company_brief, seat_brief
from tests.unit.node.companies import acme, seat_of


def test_everybody_is_a_colleague_and_agents_alone_can_be_asked() -> None:
    colleagues = CompanyColleagues(acme)

    assert [each.handle for each in colleagues.colleagues()] == ["ceo", "ann", "cto", "eng"]
    assert colleagues.agents() == ("ceo", "cto", "eng")
    assert [colleagues.is_human(handle) for handle in ("ann", "ceo", "nobody")] == [True, False, False]


def test_a_colleague_is_told_with_unit_lead_manager_and_work() -> None:
    known = {each.handle: each for each in CompanyColleagues(acme).colleagues()}

    assert (known["cto"].unit, known["cto"].lead_of) == ("Engineering", ("Engineering",))
    assert (known["eng"].manager, known["eng"].responsibilities, known["eng"].lead_of) == ("cto", ("code",), ())
    assert (known["ceo"].unit, known["ceo"].manager) == ("", "")


def test_agents_are_asked_and_people_written_to_where_they_are() -> None:
    known = {each.handle: each for each in CompanyColleagues(acme).colleagues()}

    assert known["cto"].contact == "ask with a2a_ask"
    assert known["ann"].contact == "email: Ann@acme.example, slack_user: U1"


def test_a_prompt_says_what_the_company_is_for() -> None:
    brief = company_brief(acme())

    assert (brief.name, brief.mission, brief.vision, tuple(brief.policies)) == (
        "Acme",
        "Notes for all",
        "No paper",
        ("Be kind",),
    )


def test_a_seats_prompt_names_its_unit_its_manager_and_all_others_but_itself() -> None:
    company = acme()
    brief = seat_brief(company, seat_of(company, "eng"), CompanyLines(company))

    assert (brief.handle, brief.unit, brief.manager) == ("eng", "Engineering\nBuilds it\nShip", "Technology (@cto)")
    assert brief.agent_id == str(seat_of(company, "eng").agent_id)
    assert tuple(brief.team) == ("@ceo: Chief (Lead)", "@cto: Technology (Engineering)")
    assert tuple(brief.human_colleagues) == ("@ann: Ann (mornings)",)
