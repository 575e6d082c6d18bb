"""``crewlet apply``: put a company document in force on a running node, or ask what it would change."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from crewlet.base.errors import ConfigError, Problem
from crewlet.cli.client import ApiClient, ApiRefused, NodeUnreachable, environment
from crewlet.cli.plain_text import one_line
from crewlet.cli.read_commands import print_json
from crewlet.cli.whereabouts import find_node

__all__ = ["apply"]

_ANSWER_TIMEOUT_S: Final = 90.0
"""Tool servers may start, and mailboxes are made, before a node answers."""
_LOOK_EVERY_S: Final = 0.5
_EXIT_NOT_IN_PLACE: Final = 4


def apply(options: argparse.Namespace) -> int:
    """Print what changed, and what of it did not come up.

    Exit code 0 where all of it is in place; 2 where the document cannot be used, and 1 for any other refusal: then
    nothing changed. 4 where it is in force, and a tool server does not serve or is not known to.
    """
    from crewlet.config import read_source

    if not options.wait >= 0:  # not a number is no time either
        raise ConfigError(Problem("--wait", f"{options.wait:g} is no time to wait", "give seconds, or 0"))
    return asyncio.run(_apply(options, read_source(Path(options.file)).text))


async def _apply(options: argparse.Namespace, document: str) -> int:
    where = find_node(options.url, options.config, environment())
    async with ApiClient(where, timeout_s=_ANSWER_TIMEOUT_S) as api:
        try:
            answer = await api.post("/company/check" if options.check else "/company", {"document": document})
        except ApiRefused as refused:
            raise _located(refused, options.file) from None
        if not options.json:
            _tell(answer, options)
        troubles: list[str] = []
        if not options.check:
            tools = await _tools_in_place(api, int(answer["epoch"]), options.wait)
            troubles = [answer["trouble"]] * bool(answer["trouble"]) + _troubles(tools)
            answer["tools"] = tools
    if options.json:
        print_json(answer)
    for each in troubles:
        sys.stderr.write(f"crewlet: {one_line(each)}\n")
    return _EXIT_NOT_IN_PLACE if troubles else 0


async def _tools_in_place(api: ApiClient, number: int, wait_s: float) -> dict[str, Any]:
    """How the tools of document ``number`` stand once nothing is open any more, or after ``wait_s``.

    Where no node says so, it is as if none had answered.
    """
    clock = asyncio.get_running_loop().time
    deadline_s = clock() + wait_s
    while True:
        view = await _tools(api, number)
        if not _open(view) or clock() >= deadline_s:
            return view
        await asyncio.sleep(_LOOK_EVERY_S)


async def _tools(api: ApiClient, number: int) -> dict[str, Any]:
    try:
        view = await api.get("/company/tools")
    except (ApiRefused, NodeUnreachable) as error:
        silence = {"nodes": [{"id": "the node that was asked", "answered": False, "error": str(error)}]}
        return {"epoch": number, "failures": [], "pending": [], "coverage": {**silence, "complete": False}}
    return view


def _open(view: Mapping[str, Any]) -> bool:
    return bool(view["pending"]) or not view["coverage"]["complete"]


def _troubles(view: Mapping[str, Any]) -> list[str]:
    """Each thing that does not serve, or is not known to, as a sentence."""
    failed = [
        f"{each['node']}: the tool server {each['server']}"
        + (f" of {each['seat']}" if each["seat"] else "")
        + f" does not serve: {each['error']}"
        for each in view["failures"]
    ]
    silent = [f"{each['id']}: {each['error']}" for each in view["coverage"]["nodes"] if not each["answered"]]
    pending = [f"not in place yet: {each}" for each in view["pending"]]
    return [*failed, *pending, *(f"not known: {each}" for each in silent)]


def _located(refused: ApiRefused, file: str) -> Exception:
    """The problems of a document as ``validate`` tells them: by file and line."""
    problems = cast("Sequence[Mapping[str, Any]]", refused.detail.get("problems", ()))
    if refused.code != "bad_company" or not problems:
        return refused
    found = (Problem(each["path"], each["problem"], each["remedy"], each["line"]) for each in problems)
    return ConfigError(*found, file=str(problems[0]["file"]) or file)


def _tell(answer: Mapping[str, Any], options: argparse.Namespace) -> None:
    out = sys.stdout
    for word, handles in cast("Mapping[str, Sequence[str]]", answer["seats"]).items():
        _tell_names(f"seats {word}", handles)
    _tell_names("seats whose tools start anew", answer["tools_renewed"])
    _tell_names("models changed", answer["models"])
    _tell_names("tool servers changed", answer["tool_servers"])
    if answer["ceilings"]:
        out.write("token ceilings changed\n")
    if options.check:
        out.write(f"{options.file}: can be applied to {one_line(answer['company'])}; nothing was changed\n")
    else:
        out.write(f"{one_line(answer['company'])}: in force as number {answer['epoch']}\n")
        if not answer["lasts"]:
            sys.stderr.write("crewlet: until the node stops: its next start runs its own company file\n")
    for each in cast("Sequence[Mapping[str, Any]]", answer["warnings"]):
        warning = Problem(each["path"], each["problem"], each["remedy"], each["line"])
        sys.stderr.write(f"{options.file}:{warning.line}: warning: {one_line(str(warning))}\n")


def _tell_names(what: str, names: Sequence[str]) -> None:
    if names:
        sys.stdout.write(f"{what}: {one_line(', '.join(names))}\n")
