"""The product's source keeps the house rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest

from tests.tidy import allowed, rules
from tests.tidy.tree import SOURCE, Module, module_names, source_modules

MODULES = tuple(source_modules())
NAMES = module_names()


def broken(rule: Callable[[Module], Iterable[rules.Finding]], *, exempt: Iterable[str] = ()) -> list[str]:
    """What the rule finds in each module but the exempt ones, ready to print."""
    return [
        f"src/crewlet/{module.name}:{finding.line}: {finding.what}"
        for module in MODULES
        if module.name not in exempt
        for finding in rule(module)
    ]


def is_base(module: Module) -> bool:
    return module.name.startswith("base/")


def is_another_name(text: str) -> bool:
    """Whether the text names a module (perhaps with a function, ``a.b:c``), or is on the list of exceptions."""
    module = text.partition(":")[0].rstrip(".")
    return module in NAMES or any(re.match(pattern, text) for pattern in allowed.TEXTS_LIKE_BROKER_NAMES)


def test_only_base_reads_the_clock_and_rolls_the_dice() -> None:
    exempt = {module.name for module in MODULES if is_base(module)} | allowed.CLOCKS_AND_CHANCE.keys()

    assert broken(lambda module: rules.clocks_and_chance(module.tree), exempt=exempt) == []


def test_every_task_has_an_owner() -> None:
    assert broken(lambda module: rules.orphan_tasks(module.tree), exempt={"base/tasks.py"}) == []


def test_only_supervisors_catch_everything() -> None:
    assert broken(lambda module: rules.broad_handlers(module.tree), exempt=allowed.BROAD_HANDLERS) == []


@pytest.mark.spec("E-019")
def test_names_of_the_broker_live_in_topics() -> None:
    assert broken(lambda module: rules.broker_names(module.tree, is_another_name), exempt={"topics.py"}) == []


@pytest.mark.spec("E-001")
def test_parts_tell_each_other_things_over_the_event_queue_alone() -> None:
    """Which nobody goes around: only node knows a backend, and only a backend the broker's client."""
    not_parts = {module.name for module in MODULES if module.name.startswith(("backends/", "testing/"))}

    assert broken(lambda module: rules.other_channels(module.tree), exempt=not_parts | {*allowed.OTHER_CHANNELS}) == []


def test_every_module_says_what_it_is_for() -> None:
    assert broken(lambda module: rules.missing_docstring(module.tree)) == []


def test_every_package_declares_its_public_face() -> None:
    packages = {module.name for module in MODULES if module.name.endswith("__init__.py")}
    others = {module.name for module in MODULES} - packages

    assert packages
    assert broken(lambda module: rules.missing_public_face(module.tree), exempt=others) == []


def test_no_module_is_too_long() -> None:
    assert broken(lambda module: rules.too_long(module.text)) == []


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in SOURCE.rglob("*.py")}

    assert sorted(str(folder) for folder in folders if not (folder / "__init__.py").is_file()) == []


def test_file_names_explain_themselves() -> None:
    stems = ((path, path.stem.strip("_")) for path in SOURCE.rglob("*"))

    assert sorted(str(path) for path, stem in stems if stem in rules.BANNED_FILE_NAMES) == []


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        pytest.param(allowed.BROAD_HANDLERS, rules.broad_handlers, id="broad-handlers"),
        pytest.param(allowed.CLOCKS_AND_CHANCE, rules.clocks_and_chance, id="clocks-and-chance"),
        pytest.param(allowed.OTHER_CHANNELS, rules.other_channels, id="other-channels"),
    ],
)
def test_no_exception_outlives_its_reason(
    entries: dict[str, str], rule: Callable[[object], Iterable[rules.Finding]]
) -> None:
    needed = {module.name for module in MODULES if list(rule(module.tree))}

    assert sorted(entries.keys() - needed) == []
    assert all(entries.values())
