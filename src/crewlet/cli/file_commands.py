"""``crewlet init``, ``validate`` and ``schema``: what concerns files alone and needs no node."""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from crewlet.cli.client import environment
from crewlet.cli.own_name import own_name

__all__ = ["init", "schema", "validate"]

_SECRET_BYTES: Final = 24


def init(options: argparse.Namespace) -> int:
    """Write a company to start from into the directory. Raises ``StartRefused`` rather than overwrite a file."""
    from crewlet.config import write_starter

    directory = Path(options.directory)
    if options.fleet is not None:
        return _init_fleet(directory, options.fleet)
    _tell_written(write_starter(directory))
    sys.stdout.write(f"next: cd {shlex.quote(str(directory))} && {own_name(seen_from=directory)} run\n")
    return 0


def _init_fleet(directory: Path, size: int) -> int:
    from crewlet.config import fleet_node_names, write_fleet

    _tell_written(write_fleet(directory, size, secret=secrets.token_hex(_SECRET_BYTES)))
    program, names = own_name(seen_from=directory), fleet_node_names(size)
    lines = [
        f"next: cd {shlex.quote(str(directory))}, then each in a shell of its own:",
        *(f"  {program} run -c {name}.yaml" for name in names),
        "The first start waits for three; later a majority is enough. Then ask any of them:",
        f'  {program} ask -c {names[0]}.yaml ceo "What should we build first?"',
        "The node files hold the secret by which members know each other: they are for you alone (mode 0600).",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _tell_written(paths: Iterable[Path]) -> None:
    for path in paths:
        sys.stdout.write(f"wrote {path}\n")


def validate(options: argparse.Namespace) -> int:
    """Check one file; 0 when it is sound, 2 when it is not. Warnings alone leave it sound."""
    from crewlet.config import validate_file

    report = validate_file(Path(options.file), environment())
    if options.json:
        sys.stdout.write(json.dumps(report.as_json(), ensure_ascii=False, indent=2) + "\n")
    else:
        out = sys.stdout if report.ok else sys.stderr
        out.writelines(f"{line}\n" for line in report.lines())
    return 0 if report.ok else 2


def schema(options: argparse.Namespace) -> int:
    """Print a file's JSON Schema."""
    from crewlet.config import company_schema, node_schema

    wanted = company_schema() if options.kind == "company" else node_schema()
    sys.stdout.write(json.dumps(wanted, ensure_ascii=False, indent=2) + "\n")
    return 0
