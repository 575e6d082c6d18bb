"""Reading a node file: variables expanded, sections checked, paths settled, and what deserves a warning."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import structlog
from pydantic import ValidationError

from crewlet.base.errors import ConfigError, Problem
from crewlet.config.document_paths import Location, path_text, texts
from crewlet.config.node_config import NodeAddress, NodeConfig, StreamConfig
from crewlet.config.node_file import NodeFile
from crewlet.config.node_settle import address_of, settle
from crewlet.config.other_file import COMPANY_KEYS_ELSEWHERE, refuse_the_other
from crewlet.config.problems import located, problems_of
from crewlet.config.variables import Variables, unset
from crewlet.config.yaml_source import Source, read_source
from crewlet.org import credential_in_url, malformed_reference, variable_names

__all__ = ["LoadedNode", "load_node_address", "load_node_file", "node_of"]

_log = structlog.get_logger(__name__)


class LoadedNode(NamedTuple):
    """A node's configuration, and what its file should say better."""

    config: NodeConfig
    warnings: tuple[Problem, ...]


def load_node_file(path: Path | str, env: Mapping[str, str]) -> LoadedNode:
    """Read and settle one node file; each warning is logged too. Raises ``ConfigError`` with every problem found."""
    loaded = node_of(read_source(Path(path)), env)
    for warning in loaded.warnings:
        _log.warning("node_file_warning", path=warning.path, problem=warning.problem, remedy=warning.remedy)
    return loaded


def load_node_address(path: Path | str, env: Mapping[str, str]) -> NodeAddress:
    """What a file says of its node's address, without a warning. Raises ``ConfigError``.

    No more than that is read: whoever talks to a node need not have the secrets that it runs with.
    """
    source = read_source(Path(path))
    refuse_the_other(source, "node")
    return address_of(_written(_address_alone(source), env), Path(source.file), env)


def node_of(source: Source, env: Mapping[str, str]) -> LoadedNode:
    """The same for a file already read."""
    refuse_the_other(source, "node")
    written, file = _written(source, env), Path(source.file)
    try:
        config = settle(written, file, env)
    except ConfigError as error:
        raise ConfigError(*located(error.problems, source.lines), file=source.file) from None
    return LoadedNode(config, located(_warnings(source, config, file), source.lines))


def _written(source: Source, env: Mapping[str, str]) -> NodeFile:
    problems = tuple(_variable_problems(source, env))
    if problems:
        raise ConfigError(*located(problems, source.lines), file=source.file)
    try:
        return NodeFile.model_validate(_expanded(source.values, Variables(env)))
    except ValidationError as error:
        found = problems_of(error, NodeFile, elsewhere=COMPANY_KEYS_ELSEWHERE)
        raise ConfigError(*located(found, source.lines), file=source.file) from None


def _address_alone(source: Source) -> Source:
    kept = {key: value for key, value in source.values.items() if key in ("data_dir", "api")}
    if isinstance(api := kept.get("api"), dict):
        kept["api"] = {key: value for key, value in cast("dict[str, object]", api).items() if key in ("host", "port")}
    return Source(source.file, kept, source.lines)


def _variable_problems(source: Source, env: Mapping[str, str]) -> Iterator[Problem]:
    variables = Variables(env)
    for location, text in texts(source.values):
        path = path_text(location)
        yield from (unset(name, path) for name in variable_names(text) if not variables.is_known(name))
        if malformed_reference(text):
            yield Problem(path, "holds a `${` that begins no reference", "write ${NAME}: letters, digits, underscores")


def _expanded(value: object, variables: Variables) -> object:
    if isinstance(value, str):
        return variables(value)
    if isinstance(value, dict):
        return {key: _expanded(inner, variables) for key, inner in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_expanded(inner, variables) for inner in cast("list[object]", value)]
    return value


def _warnings(source: Source, config: NodeConfig, file: Path) -> Iterator[Problem]:
    if config.stream.is_in_memory:
        yield Problem("stream.store_dir", "streams are in memory: mail and records end with the process", "set a path")
    yield from _cluster_warnings(config.stream)
    if config.stream.leaf_listener is not None and not config.stream.leaf_listener.secret:
        yield Problem("stream.leaf.secret", "without one, any program on this machine may join", "set one")
    literal = [path_text(location) for location, text in texts(source.values) if _is_literal_credential(location, text)]
    if literal and _readable_by_others(file):
        for path in literal:
            yield Problem(
                path, "a credential in clear, in a file that others can read", f"chmod 600 {file}, or ${{VAR}}"
            )


def _cluster_warnings(stream: StreamConfig) -> Iterator[Problem]:
    if stream.cluster is None:
        return
    if stream.replicas == 1:
        yield Problem(
            "stream.replicas", "one copy in a cluster: when a member is lost, what it alone kept is lost", "write 3"
        )
    if not stream.cluster.secret:
        yield Problem("stream.cluster.secret", "without one, any program on this machine may join", "set one")


def _is_literal_credential(location: Sequence[str | int], text: str) -> bool:
    if location == ("stream", "url"):
        return any(credential_in_url(url.strip()) for url in text.split(","))
    is_secret = location in {("stream", "token"), ("stream", "cluster", "secret"), ("stream", "leaf", "secret")}
    is_token: bool = is_secret or _is_api_token(tuple(location))
    return is_token and bool(text) and not variable_names(text)


def _is_api_token(location: Location) -> bool:
    return location[:3] == ("api", "auth", "tokens") and location[-1] == "token"


def _readable_by_others(file: Path) -> bool:
    try:
        return bool(stat.S_IMODE(file.stat().st_mode) & 0o077)
    except OSError:
        return True  # Gone since it was read: what is not known to be closed counts as open.
