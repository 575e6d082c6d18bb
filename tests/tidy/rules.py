"""The house rules that a parser can check: each takes one module's text and yields what is wrong with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = [
    "BANNED_FILE_NAMES",
    "LINES_MAX",
    "Finding",
    "broad_handlers",
    "broker_names",
    "clocks_and_chance",
    "missing_docstring",
    "missing_public_face",
    "orphan_tasks",
    "other_channels",
    "too_long",
]

LINES_MAX = 500
BANNED_FILE_NAMES = frozenset({"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"})

_CLOCKS = frozenset(
    {
        "time.time",
        "time.time_ns",
        "datetime.datetime.now",
        "datetime.datetime.utcnow",
        "datetime.datetime.today",
        "datetime.date.today",
        "uuid.uuid1",
        "uuid.uuid4",
    }
)
_SEEDED = "random.Random"
_TASK_MAKERS = frozenset({"asyncio.create_task", "asyncio.ensure_future"})
_LOOP_NAMES = frozenset({"loop", "_loop", "get_running_loop", "get_event_loop", "new_event_loop"})
_CHANNELS = re.compile(
    r"asyncio\.(\w*Queue|open_connection|open_unix_connection|start_server|start_unix_server)"
    r"|queue\.\w*Queue|multiprocessing\.\w[\w.]*|anyio\.create_memory_object_stream|os\.mkfifo"
    r"|socket\.(socket|socketpair|create_connection|create_server)|(zmq|aiohttp|redis|pika|aio_pika|aiokafka)\b.*"
)
# A file's name starts like a subject; its ending tells the two apart.
_BROKER_NAME = re.compile(
    r"(crewlet\.(?!(ya?ml|toml|json|db|sqlite|log|lock|pid|sock)\b)[a-z_*>{]*|CREWLET_|crewlet_|dlq\.)"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong, and the line it is on."""

    line: int
    what: str


def clocks_and_chance(tree: ast.Module) -> Iterator[Finding]:
    """Uses of the machine's wall clock, of unseeded chance and of random ids, however they were imported."""
    for line, name in _references(tree):
        unseeded = name.startswith("random.") and name != _SEEDED
        if name in _CLOCKS or unseeded:
            yield Finding(line, f"{name}: take a Clock, Ids or a seeded Random instead")


def orphan_tasks(tree: ast.Module) -> Iterator[Finding]:
    """Tasks that no owner supervises; a TaskGroup's own ``create_task`` is fine."""
    for line, name in _references(tree):
        if name in _TASK_MAKERS:
            yield Finding(line, f"{name}: start it through base.tasks or a TaskGroup")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "create_task" and _last_name(node.value) in _LOOP_NAMES:
            yield Finding(node.lineno, "loop.create_task: start it through base.tasks or a TaskGroup")


def other_channels(tree: ast.Module) -> Iterator[Finding]:
    """Queues, pipes and sockets: ways for one part to tell another something that the event queue does not carry."""
    for line, name in _references(tree):
        if _CHANNELS.fullmatch(name):
            yield Finding(line, f"{name}: parts tell each other things over the event queue alone")


def broad_handlers(tree: ast.Module) -> Iterator[Finding]:
    """Handlers for everything that do not end by raising what they caught again."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node.type) and not _raises_again(node):
            yield Finding(node.lineno, "a handler for everything: only supervisors have one")


def broker_names(tree: ast.Module, is_another: Callable[[str], bool]) -> Iterator[Finding]:
    """Texts that begin like a subject, stream or bucket name; docstrings and what ``is_another`` kind of name aside."""
    docstrings = set(_docstrings(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or node in docstrings:
            continue
        if _BROKER_NAME.match(node.value) and not is_another(node.value):
            yield Finding(node.lineno, f"{node.value!r}: names of the broker live in topics.py")


def missing_docstring(tree: ast.Module) -> Iterator[Finding]:
    """A module that does not open by saying what it is for."""
    if not ast.get_docstring(tree):
        yield Finding(1, "no docstring that says what the module is for")


def missing_public_face(tree: ast.Module) -> Iterator[Finding]:
    """A package's ``__init__`` that holds code and no ``__all__``."""
    code = [node for node in tree.body if not _is_preamble(node)]
    if code and "__all__" not in {target for node in code for target in _assigned(node)}:
        yield Finding(1, "code without __all__: a package's __init__ is its public face")


def too_long(text: str) -> Iterator[Finding]:
    """A module that should have been split by noun."""
    lines = len(text.splitlines())
    if lines > LINES_MAX:
        yield Finding(LINES_MAX, f"{lines} lines, at most {LINES_MAX}: split it by noun")


def _references(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each use of an imported name, written out in full: ``t.time`` after ``import time as t`` is ``time.time``."""
    imported = dict(_imports(tree))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            head, _, rest = _dotted(node).partition(".")
            if head in imported:
                yield node.lineno, f"{imported[head]}.{rest}" if rest else imported[head]


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.asname or name.name.partition(".")[0], name.name
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                yield name.asname or name.name, f"{node.module}.{name.name}"


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return _dotted(node).rpartition(".")[2]


def _catches_everything(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_catches_everything(each) for each in caught.elts)
    return caught is None or _last_name(caught) in {"Exception", "BaseException"}


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            yield node.value


def _is_preamble(node: ast.stmt) -> bool:
    future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return future or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id
