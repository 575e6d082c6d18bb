"""The frozen halves of the prompts: who the seat is, its company, and how a turn works. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from crewlet.inbox import Note
from crewlet.turns.builtin_submit_review import SUBMIT_REVIEW
from crewlet.turns.builtin_submit_work import SUBMIT_WORK
from crewlet.turns.builtin_tool_discovery import ACTIVATE_TOOL, LIST_SERVER_TOOLS
from crewlet.turns.setup import TurnSetup
from crewlet.turns.worker_surface import DELEGATE

__all__ = ["corrective", "executor_system", "extension_message", "note_message", "reviewer_system"]

_YOUR_TURN: Final = f"""\
You work in turns. Something woke you: the message below says what and who waits for it. Work it with tool calls; text
beside them is read by nobody but those who look over your shoulder. End with `{SUBMIT_WORK}`, once, when nothing is
left to do. What you claim there is checked against the calls you made, so claim nothing you did not do.
When you ask a colleague, your turn ends with that round of calls; the answer wakes you again, with the task at hand.
Ask only what you cannot answer yourself, and put everything the colleague needs to know into the question.
When a call fails, read why and correct it; do not repeat the same call."""

_REVIEW: Final = f"""\
You review the work of one turn, as a second pair of eyes, before it goes out. You have one tool: `{SUBMIT_REVIEW}`.
Judge by the task, and by the record of calls, which the engine writes (long results are cut in it): a claim without a
call behind it is not done. Decide `done` when the result answers the task; `self_iterate` with notes that say exactly
what to change, when another round of work can mend it; `failed` with the reason, when it cannot. A task that truly
needs no action, or a blocker that is named and real, is `done`. Do not send work back over matters of taste."""


def executor_system(setup: TurnSetup) -> str:
    """The executor's system prompt, in its fixed order; the same for every phase of a turn."""
    return _sections(_executor_sections(setup))


def reviewer_system(setup: TurnSetup) -> str:
    """The reviewer's system prompt."""
    seat, company = setup.seat, setup.company
    return _sections(
        iter(
            [
                ("Your task", _REVIEW),
                ("Whose work", f"{seat.name} (`{seat.handle}`) of {company.name}. {seat.goal}".strip()),
                ("Responsibilities", _bullets(seat.responsibilities)),
                ("Policies", _bullets(company.policies)),
            ]
        )
    )


def corrective(finisher: str) -> str:
    """What a phase is told that answered in prose where a call was due."""
    return (
        f"That was prose alone, which ends nothing and reaches nobody. Go on with tool calls, or end with `{finisher}` "
        "and put what you have to say into it."
    )


def extension_message(rounds: int) -> str:
    """What a phase is told that was granted more rounds."""
    return (
        f"You had used up your rounds and were granted {rounds} more, the last ones that you can count on. Finish what"
        " matters most, and end in time."
    )


def _executor_sections(setup: TurnSetup) -> Iterator[tuple[str, str]]:
    seat, company = setup.seat, setup.company
    manager = f" You report to {seat.manager}." if seat.manager else ""
    yield "Identity", f"You are {seat.name} (`{seat.handle}`) at {company.name}.{manager}\n{seat.goal}".strip()
    about = [("Mission", company.mission), ("Vision", company.vision)]
    yield "Company", "\n".join([company.name, *(f"{name}: {text}" for name, text in about if text)])
    yield "Background", seat.backstory
    yield "Responsibilities", _bullets(seat.responsibilities)
    yield "How you behave", _bullets(seat.guidelines)
    yield "Your unit", seat.unit
    yield "Policies", _bullets(company.policies)
    yield "Your team", _bullets(seat.team)
    yield "Human colleagues", _bullets(seat.human_colleagues)
    yield "Your turn", _YOUR_TURN
    if setup.subagent is not None:
        yield "Workers", _bullets([f"{each.name}: {each.description}" for each in setup.workers.values()])
    yield "Available tools", _tools(setup)


def note_message(note: Note) -> str:
    """A person's note to the running turn, as its model reads it."""
    return f"A note from {note.by}, sent while you work:\n\n{note.text}"


def _tools(setup: TurnSetup) -> str:
    delegate = [] if setup.subagent is None else [DELEGATE]
    builtin = [tool.row.name for tool in setup.tools.builtins()]
    lines = ["Built in: " + ", ".join(f"`{name}`" for name in [SUBMIT_WORK, *delegate, *builtin])]
    servers = [f"`{each.name}`" + (" (does not serve now)" if each.failed else "") for each in setup.tools.servers()]
    if servers:
        lines.append("Tool servers: " + ", ".join(servers))
        lines.append(
            f"`{LIST_SERVER_TOOLS}` shows what a server offers; `{ACTIVATE_TOOL}` makes one of its tools callable."
        )
    return "\n".join(lines)


def _sections(sections: Iterator[tuple[str, str]]) -> str:
    return "\n\n".join(f"## {title}\n{text}" for title, text in sections if text)


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
