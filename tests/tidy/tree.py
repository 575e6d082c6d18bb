"""Where the repository's files are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "SOURCE", "Module", "module_names", "source_modules", "texts"]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "crewlet"
_FOLDERS = (".ci", "benchmarks", "docs", "examples", "requirements", "src", "tests")
_TEXT_SUFFIXES = frozenset({"", ".css", ".html", ".js", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class Module:
    """One module of the product: its path below the package, its text, and what the text parses to."""

    name: str
    text: str
    tree: ast.Module


def source_modules() -> Iterator[Module]:
    """Every module of the product."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield Module(path.relative_to(SOURCE).as_posix(), text, ast.parse(text))


def module_names() -> frozenset[str]:
    """The dotted names of all modules and packages of the product."""
    found = (path.relative_to(SOURCE.parent).with_suffix("") for path in SOURCE.rglob("*.py"))
    return frozenset(".".join(path.parts).removesuffix(".__init__") for path in found)


def texts() -> Iterator[tuple[str, str]]:
    """Every text file that a reader of the repository meets, with its path below the root."""
    top = (path for path in ROOT.iterdir() if path.is_file())
    below = (path for folder in _FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file())
    for path in sorted([*top, *below]):
        if path.suffix in _TEXT_SUFFIXES and not path.name.startswith(".git") and ".crewlet" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="replace")
