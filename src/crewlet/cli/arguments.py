"""The command line: what may be typed, and which command it becomes."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

from crewlet.base import limits

__all__ = ["Command", "parse"]

_ASK_TIMEOUT_S: Final = 600.0
_APPLY_WAIT_S: Final = 20.0
_EVENTS_LIMIT: Final = 50


@dataclass(frozen=True, slots=True)
class Command:
    """One command with its parsed options; what implements it is imported when it runs."""

    module: str
    function: str
    options: argparse.Namespace

    def run(self) -> int:
        """Run it; returns the exit code. Raises ``CrewletError``."""
        run = cast("Callable[[argparse.Namespace], int]", getattr(importlib.import_module(self.module), self.function))
        return run(self.options)


def parse(argv: Sequence[str] | None = None) -> Command:
    """The command that ``argv`` names. Exits with 2 and usage on stderr where it names none."""
    options = _parser().parse_args(argv)
    module, function = cast("tuple[str, str]", options.command)
    return Command(f"crewlet.cli.{module}", function, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="crewlet",
        description="Runs a company of AI agents: durable mailboxes, one holder per seat, turns that are never lost.",
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _run(commands)
    _ask(commands)
    _message(commands)
    _seats(commands)
    _steer(commands)
    _fleet(commands)
    _events(commands)
    _mailboxes(commands)
    _dlq(commands)
    _coordination(commands)
    _budgets(commands)
    _apply(commands)
    _init(commands)
    _validate(commands)
    _schema(commands)
    return parser


def _version() -> str:
    from crewlet import __version__

    return f"crewlet {__version__}"


class _Commands(Protocol):
    """What argparse hands out for adding commands; its own name for it is private."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser: ...  # noqa: A002 - argparse's word


def _add(commands: _Commands, name: str, text: str, command: tuple[str, str]) -> argparse.ArgumentParser:
    added = commands.add_parser(name, help=text, description=text)
    added.set_defaults(command=command)
    return added


def _node_options(parser: argparse.ArgumentParser, default: str = "") -> None:
    parser.add_argument("--url", default=default, help="address of the node's API; default: from the node file")
    parser.add_argument(
        "-c", "--config", default=default, help="node file that says where the node is (./crewlet.yaml)"
    )


def _run(commands: _Commands) -> None:
    parser = _add(commands, "run", "Run this node and the company until Ctrl-C.", ("run_command", "run"))
    parser.add_argument("-c", "--config", default="", help="node file; default: ./crewlet.yaml, or built-in defaults")
    parser.add_argument("--company", default="", help="company document; default: ./company.yaml")
    parser.add_argument(
        "--log-level", default="", choices=["debug", "info", "warn", "error"], help="overrides the node file"
    )
    parser.add_argument("--log-format", default="", choices=["console", "text", "json"], help="overrides the node file")


def _ask(commands: _Commands) -> None:
    parser = _add(commands, "ask", "Write to a seat, watch its turns, print the answer.", ("ask_command", "ask"))
    parser.add_argument("seat", help="the handle of an agent seat")
    parser.add_argument("text", help="the message; - reads it from standard input")
    parser.add_argument(
        "--timeout", type=float, default=_ASK_TIMEOUT_S, metavar="S", help="how long to wait (default: %(default)g)"
    )
    parser.add_argument("--quiet", action="store_true", help="print the answer alone")
    parser.add_argument("--json", action="store_true", help="print how the message stands in the end, as JSON")
    _node_options(parser)


def _message(commands: _Commands) -> None:
    text = "Show how a message stands, and its answer once there is one."
    parser = _add(commands, "message", text, ("message_command", "message"))
    parser.add_argument("id", metavar="ID", help="the message's id: `crewlet ask` names it when it stops waiting")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _node_options(parser)


def _seats(commands: _Commands) -> None:
    text = "Show the company's seats and what they do; pause and resume them."
    parser = _add(commands, "seats", text, ("read_commands", "seats"))
    parser.add_argument("--json", action="store_true", help="print JSON")
    _node_options(parser)
    verbs = cast("_Commands", parser.add_subparsers(metavar="VERB"))
    text = "Have a seat start nothing more until it is resumed; its mail waits."
    pause = _add(verbs, "pause", text, ("seat_commands", "seats_pause"))
    pause.add_argument("--reason", default="", help="shown wherever the pause is")
    pause.add_argument("--stop-running", action="store_true", help="end the running turn at its next step, for good")
    resume = _add(verbs, "resume", "Let a paused seat go on.", ("seat_commands", "seats_resume"))
    for verb in (pause, resume):
        verb.add_argument("seat", metavar="HANDLE", help="the handle of an agent seat")
        # What was given before the verb stands where it is not given again.
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        _node_options(verb, default=argparse.SUPPRESS)


def _steer(commands: _Commands) -> None:
    text = "Tell a running turn something; its model reads it at its next round."
    parser = _add(commands, "steer", text, ("steer_command", "steer"))
    parser.add_argument(
        "turn", metavar="TURN", help="the id of a running turn: TURN in `crewlet seats` of the node that runs it"
    )
    parser.add_argument("note", help="what to tell it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _node_options(parser)


def _fleet(commands: _Commands) -> None:
    parser = _add(commands, "fleet", "Show the nodes and who runs which seat.", ("fleet_command", "fleet"))
    parser.add_argument("--json", action="store_true", help="print JSON")
    _node_options(parser)


def _events(commands: _Commands) -> None:
    parser = _add(commands, "events", "Show what happened.", ("read_commands", "events"))
    parser.add_argument("--follow", "-f", action="store_true", help="go on with what happens from now on")
    parser.add_argument("--type", default="", help="only events of this type")
    parser.add_argument("--seat", default="", help="only events of this seat")
    parser.add_argument(
        "--limit",
        type=_page_size,
        metavar="N",
        default=_EVENTS_LIMIT,
        help=f"how many of the newest, up to {limits.EVENT_PAGE_MAX} (default: %(default)d)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    _node_options(parser)


def _page_size(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= limits.EVENT_PAGE_MAX:
        return int(text)
    message = f"{text!r} is no whole number from 1 to {limits.EVENT_PAGE_MAX}"
    raise argparse.ArgumentTypeError(message)


def _mailboxes(commands: _Commands) -> None:
    text = "Show the durable mailboxes: what waits, what is held, who is attached."
    parser = _add(commands, "mailboxes", text, ("queue_commands", "mailboxes"))
    parser.add_argument("--seat", default="", help="only those of this seat")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _node_options(parser)


def _dlq(commands: _Commands) -> None:
    text = "Look at the dead letters, send them again, drop them."
    dlq = commands.add_parser("dlq", help=text, description=text)
    verbs = cast("_Commands", dlq.add_subparsers(required=True, metavar="VERB"))
    listed = _add(verbs, "list", "List what was given up, newest first.", ("queue_commands", "dlq_list"))
    _letter_filters(listed)
    listed.add_argument(
        "--limit", type=_page_size, metavar="N", default=_EVENTS_LIMIT, help="how many (default: %(default)d)"
    )
    listed.add_argument("--before", default="", metavar="ID", help="only older ones than this")
    listed.add_argument("--json", action="store_true", help="print JSON")
    shown = _add(verbs, "show", "Show one letter with its message.", ("queue_commands", "dlq_show"))
    shown.add_argument("id", help="the letter's id")
    shown.add_argument("--json", action="store_true", help="print JSON")
    redrive = _add(verbs, "redrive", "Send letters to their topic again.", ("queue_commands", "dlq_redrive"))
    drop = _add(verbs, "drop", "Remove letters for good.", ("queue_commands", "dlq_drop"))
    for parser in (redrive, drop):
        parser.add_argument("ids", nargs="*", metavar="ID", help="a letter's id")
        parser.add_argument("--all", action="store_true", help="every letter (of --seat or --topic, if given)")
        _letter_filters(parser)
        parser.add_argument("--yes", action="store_true", help="needed for more than one letter")
    for parser in (listed, shown, redrive, drop):
        _node_options(parser)


def _coordination(commands: _Commands) -> None:
    text = "Look at what the company has agreed on: leases, epochs, completions and every other shared record."
    coordination = commands.add_parser("coordination", help=text, description=text)
    verbs = cast("_Commands", coordination.add_subparsers(required=True, metavar="VERB"))
    text = "List the slots, or the records of one."
    listed = _add(verbs, "ls", text, ("coordination_commands", "coordination_ls"))
    listed.add_argument("slot", nargs="?", default="", help="the slot; without one, every slot is named")
    listed.add_argument("key_class", nargs="?", default="", metavar="class", help="only keys that begin with this")
    listed.add_argument("--after", default="", metavar="KEY", help="only keys behind this one")
    listed.add_argument(
        "--limit",
        type=_record_page_size,
        metavar="N",
        default=limits.RECORD_PAGE,
        help="how many (default: %(default)d)",
    )
    got = _add(verbs, "get", "Show one record.", ("coordination_commands", "coordination_get"))
    got.add_argument("slot", help="the slot")
    got.add_argument("key", help="the record's key (seat.ceo), or the name it was made from (seat:ceo)")
    for parser in (listed, got):
        parser.add_argument("--json", action="store_true", help="print JSON")
        _node_options(parser)


def _record_page_size(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= limits.RECORD_PAGE_MAX:
        return int(text)
    message = f"{text!r} is no whole number from 1 to {limits.RECORD_PAGE_MAX}"
    raise argparse.ArgumentTypeError(message)


def _letter_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seat", default="", help="only letters of this seat")
    parser.add_argument("--topic", default="", help="only letters of this topic (* and > as in subjects)")


def _budgets(commands: _Commands) -> None:
    text = "Look at the token budgets. A raised ceiling (`crewlet apply`) makes room at once."
    budgets = commands.add_parser("budgets", help=text, description=text)
    verbs = cast("_Commands", budgets.add_subparsers(required=True, metavar="VERB"))
    shown = _add(verbs, "show", "Show what was spent in each window.", ("budget_command", "budgets_show"))
    shown.add_argument("--all", action="store_true", help="the windows of seats without a ceiling too")
    shown.add_argument("--json", action="store_true", help="print JSON")
    _node_options(shown)


def _apply(commands: _Commands) -> None:
    text = "Put a company document in force on the running node or fleet; print what changed."
    parser = _add(commands, "apply", text, ("apply_command", "apply"))
    parser.add_argument("file", help="the company document")
    parser.add_argument("--check", action="store_true", help="change nothing: say what it would change")
    parser.add_argument(
        "--wait",
        type=float,
        default=_APPLY_WAIT_S,
        metavar="S",
        help="how long its tool servers may take to start, on all nodes (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    _node_options(parser)


def _init(commands: _Commands) -> None:
    parser = _add(commands, "init", "Write a small commented company to start from.", ("file_commands", "init"))
    parser.add_argument("directory", help="where to write it; existing files are never overwritten")
    parser.add_argument(
        "--fleet", type=int, default=None, metavar="N", help="N node files that run it together (3 to 5)"
    )


def _validate(commands: _Commands) -> None:
    parser = _add(commands, "validate", "Check a node file or a company document.", ("file_commands", "validate"))
    parser.add_argument("file", help="the file to check")
    parser.add_argument("--json", action="store_true", help="print the problems as JSON")


def _schema(commands: _Commands) -> None:
    parser = _add(commands, "schema", "Print the JSON Schema of a file.", ("file_commands", "schema"))
    parser.add_argument("kind", choices=["company", "node"], help="which file")
