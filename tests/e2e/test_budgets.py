"""A company over its token budget waits, says so, and goes on as soon as a ceiling is raised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crewlet.testing.engine_files import write_engine_files
from crewlet.testing.engines import Engine, run_command, running_engine
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, role, scripted, write_script

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

Json = dict[str, Any]
EACH = 40
"""What a reply of the script claims to have cost."""


def document(**ceilings: int) -> Json:
    return company(role("ceo"), role("cto"), llm={"script": scripted()}, token_budget=ceilings)


async def month_of(engine: Engine, scope: str = "") -> Json:
    scopes = (await engine.api.get("/budgets"))["scopes"]
    return next(found["windows"][2] for found in scopes if found["handle"] == scope)


async def seat_of(engine: Engine, handle: str) -> Json:
    return next(seat for seat in (await engine.api.get("/seats"))["seats"] if seat["handle"] == handle)


async def recorded(engine: Engine) -> int:
    """The tokens of every reply that the log has a record of."""
    events = (await engine.api.get("/events", type="agent_phase_completed"))["events"]
    whole = [await engine.api.get(f"/events/{event['id']}") for event in events]
    return sum(each["payload"]["total_tokens"] for each in whole)


async def test_a_seat_over_its_ceiling_waits_and_works_once_the_ceiling_is_raised(tmp_path: Path) -> None:
    usage = {"input_tokens": 30, "output_tokens": EACH - 30}
    write_script(tmp_path, {**ECHO, "usage": usage}, {"when": {"phase": "review"}, "say": "Reviewed.", "usage": usage})
    files = await write_engine_files(tmp_path, document(month=EACH + 1))
    async with running_engine(files) as engine:
        sent = await engine.api.send("ceo", "Hi")

        async def is_stopped() -> bool:
            return (await seat_of(engine, "ceo"))["stopped_reason"] == "budget"

        await wait_until(is_stopped, what="the seat to be stopped by its budget", timeout_s=20)
        parked, seat = await month_of(engine), await seat_of(engine, "ceo")
        waiting = await engine.api.message(sent)
        second = await engine.api.send("ceo", "Hi again")
        behind = await engine.api.message(second)
        mailbox = next(
            box for box in (await engine.api.get("/mailboxes", seat="ceo"))["mailboxes"] if "inbox" in box["topic"]
        )
        (tmp_path / "company.yaml").write_text(json.dumps(document(month=10 * EACH)), encoding="utf-8")
        applied = await run_command("apply", "company.yaml", "-c", str(files.node_file), cwd=tmp_path)
        answers = [(await engine.api.final_message(each))["answer"] for each in (sent, second)]
        after = await month_of(engine)
        shown = await run_command("budgets", "show", "--json", "-c", str(files.node_file), cwd=tmp_path)

        assert (parked["used"], parked["state"]) == (2 * EACH, "refusing")
        assert parked["refused_at"] is not None
        assert "the token budget of the company for the month" in seat["last_error"]
        assert waiting["state"] in {"waiting", "working"}
        assert (behind["state"], behind["reason"]) == ("waiting", "the seat is stopped: budget")
        assert mailbox["pending"] + mailbox["held"] == 2
        assert (applied.code, "token ceilings changed" in applied.out) == (0, True)
        assert answers == ["Reviewed."] * 2
        # Two for the turn that was refused, two for each that was not; the two messages may be one turn's.
        assert after["used"] in {4 * EACH, 6 * EACH}
        assert (after["state"], after["refused_at"]) == ("ok", None)
        assert await recorded(engine) == after["used"]
        assert (await month_of(engine, "ceo"))["used"] == after["used"]
        assert (await month_of(engine, "cto"))["used"] == 0
        assert json.loads(shown.out)["scopes"][0]["windows"][2]["max"] == 10 * EACH


async def test_the_counters_are_the_sum_of_the_recorded_replies_though_the_engine_was_killed(tmp_path: Path) -> None:
    usage = {"input_tokens": 30, "output_tokens": EACH - 30}
    looks: Json = {"when": {"phase": "execute", "after": "none"}, "call": [{"tool": "lookup_colleague", "with": {}}]}
    replies = [{**each, "usage": usage} for each in (looks, ECHO, {"when": {"phase": "review"}, "say": "Reviewed."})]
    write_script(tmp_path, *replies, delay_ms=700)
    files = await write_engine_files(tmp_path, document(month=1000 * EACH))
    async with running_engine(files) as first:
        sent = await first.api.send("ceo", "Hi")

        async def is_charged() -> bool:
            return (await month_of(first))["used"] == EACH

        await wait_until(is_charged, what="the first reply's charge", timeout_s=20)
        await first.kill()
    async with running_engine(files) as second:
        answer = await second.api.final_message(sent)
        used = (await month_of(second))["used"]

        assert answer["answer"] == "Reviewed."
        assert used == 3 * EACH
        assert await recorded(second) == used
        assert (await month_of(second, "ceo"))["used"] == used
