"""``crewlet apply``: put a company document in force on a running node, or ask what it would change."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from crewlet.base.errors import ConfigError, Problem
from crewlet.cli.client import ApiClient, ApiRefused, environment
from crewlet.cli.plain_text import one_line
from crewlet.cli.read_commands import print_json
from crewlet.cli.whereabouts import find_node

__all__ = ["apply"]

_ANSWER_TIMEOUT_S: Final = 90.0
"""Tool servers may start, and mailboxes are made, before a node answers."""


def apply(options: argparse.Namespace) -> int:
    """Print what changed; 2 where the document cannot be used, and then nothing changed."""
    from crewlet.config import read_source

    return asyncio.run(_apply(options, read_source(Path(options.file)).text))


async def _apply(options: argparse.Namespace, document: str) -> int:
    where = find_node(options.url, options.config, environment())
    async with ApiClient(where, timeout_s=_ANSWER_TIMEOUT_S) as api:
        try:
            answer = await api.post("/company/check" if options.check else "/company", {"document": document})
        except ApiRefused as refused:
            raise _located(refused, options.file) from None
    if options.json:
        print_json(answer)
        return 0
    _tell(answer, options)
    return 0


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
