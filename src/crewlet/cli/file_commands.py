"""``crewlet init``, ``validate`` and ``schema``: what concerns files alone and needs no node."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from crewlet.cli.client import environment
from crewlet.cli.own_name import own_name

__all__ = ["init", "schema", "validate"]


def init(options: argparse.Namespace) -> int:
    """Write a company to start from into the directory. Raises ``StartRefused`` rather than overwrite a file."""
    from crewlet.config import write_starter

    directory = Path(options.directory)
    for path in write_starter(directory):
        sys.stdout.write(f"wrote {path}\n")
    sys.stdout.write(f"next: cd {shlex.quote(str(directory))} && {own_name(seen_from=directory)} run\n")
    return 0


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
