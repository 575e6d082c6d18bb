"""The frozen halves of the prompts: who the seat is, its company, and how a turn works. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from crewlet.inbox import Note
from crewlet.tools import ServerSummary
from crewlet.turns.builtin_mark_onboarded import MARK_ONBOARDED
from crewlet.turns.builtin_submit_review import SUBMIT_REVIEW
from crewlet.turns.builtin_submit_work import SUBMIT_WORK
from crewlet.turns.builtin_tool_discovery import ACTIVATE_TOOL, LIST_SERVER_TOOLS
from crewlet.turns.setup import TurnSetup
from crewlet.turns.worker_surface import DELEGATE

__all__ = [
    "corrective",
    "executor_system",
    "extension_message",
    "note_message",
    "onboarding_system",
    "reviewer_system",
]

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


_ONBOARDING: Final = f"""\
You are new at this place in the company: new altogether, or what stands above you has changed. Before your first work
here you look around; nobody waits for you yet, and the work follows by itself. Find out who you answer to and who
answers to you, what is expected of you, and which of your tools serve that: open the tool servers, read what they hold.
You can read and change nothing here. End with `{MARK_ONBOARDED}`, once, as soon as you know your way."""

_ONBOARDED: Final = """\
You are new at this place in the company, and have looked around just before this work. Tools that you activated then
are callable now."""


def executor_system(setup: TurnSetup, *, onboarding: bool = False) -> str:
    """The executor's system prompt, in its fixed order; the same for every phase of a turn.

    ``onboarding``: the turn begins with one.
    """
    return _sections(_executor_sections(setup, onboarding=onboarding))


def onboarding_system(setup: TurnSetup, tools: Sequence[str], servers: Sequence[ServerSummary]) -> str:
    """The system prompt of an onboarding: who the seat is and where, as the executor is told, and what to do now."""
    return _sections(_onboarding_sections(setup, tools, servers))


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


def _executor_sections(setup: TurnSetup, *, onboarding: bool) -> Iterator[tuple[str, str]]:
    yield from _place_sections(setup)
    yield "Your turn", _YOUR_TURN
    yield "Your onboarding", _ONBOARDED if onboarding else ""
    if setup.subagent is not None:
        yield "Workers", _bullets([f"{each.name}: {each.description}" for each in setup.workers.values()])
    delegate = [] if setup.subagent is None else [DELEGATE]
    builtin = [tool.row.name for tool in setup.tools.builtins()]
    yield "Available tools", _tools([SUBMIT_WORK, *delegate, *builtin], setup.tools.servers())


def _onboarding_sections(
    setup: TurnSetup, tools: Sequence[str], servers: Sequence[ServerSummary]
) -> Iterator[tuple[str, str]]:
    yield from _place_sections(setup)
    yield "Your onboarding", _ONBOARDING
    yield "Available tools", _tools(tools, servers)


def _place_sections(setup: TurnSetup) -> Iterator[tuple[str, str]]:
    """Who the seat is, and what is around it."""
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


def note_message(note: Note) -> str:
    """A person's note to the running turn, as its model reads it."""
    return f"A note from {note.by}, sent while you work:\n\n{note.text}"


def _tools(builtin: Sequence[str], servers: Sequence[ServerSummary]) -> str:
    lines = ["Built in: " + ", ".join(f"`{name}`" for name in builtin)]
    named = [f"`{each.name}`" + (" (does not serve now)" if each.failed else "") for each in servers]
    if named:
        lines.append("Tool servers: " + ", ".join(named))
        lines.append(
            f"`{LIST_SERVER_TOOLS}` shows what a server offers; `{ACTIVATE_TOOL}` makes one of its tools callable."
        )
    return "\n".join(lines)


def _sections(sections: Iterator[tuple[str, str]]) -> str:
    return "\n\n".join(f"## {title}\n{text}" for title, text in sections if text)


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
