"""The node file: defaults, paths, variables, and what one node cannot do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from crewlet.base.errors import ConfigError, Problem
from crewlet.config import LoadedNode, NodeConfig, load_node_address, load_node_file

_TOKEN = "ct_0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def _load(folder: Path, text: str, env: Mapping[str, str] | None = None, *, mode: int = 0o600) -> LoadedNode:
    path = folder / "crewlet.yaml"
    path.write_text(text)
    path.chmod(mode)
    return load_node_file(path, env or {})


def _config(folder: Path, text: str, env: Mapping[str, str] | None = None) -> NodeConfig:
    return _load(folder, text, env).config


def _problem(folder: Path, text: str, env: Mapping[str, str] | None = None) -> Problem:
    with pytest.raises(ConfigError) as caught:
        _load(folder, text, env)
    (problem,) = caught.value.problems
    return problem


def test_everything_a_node_keeps_is_under_the_data_directory_beside_its_file(folder: Path) -> None:
    config = _config(folder, "{}")

    assert config.data_dir == folder / ".crewlet"
    assert config.store_path == folder / ".crewlet" / "crewlet.db"
    assert config.stream.store_dir == folder / ".crewlet" / "stream"
    assert config.api.token_file == folder / ".crewlet" / "operator-token"


@pytest.mark.spec("E-004")
def test_the_defaults_are_one_closed_local_node(folder: Path) -> None:
    config = _config(folder, "{}")

    assert (config.api.host, config.api.port) == ("127.0.0.1", 8000)
    assert config.api.allow_anonymous_read is False
    assert (config.stream.type, config.stream.sync_interval_s) == ("embedded", None)
    assert config.stream.event_retention_s == 720 * 3600
    assert (config.max_concurrent, config.lease_ttl_s) == (32, 45.0)
    assert (config.logging.level, config.logging.format) == ("info", "console")


def test_a_path_counts_from_the_files_folder_and_home_is_the_persons(folder: Path) -> None:
    text = "data_dir: data\nstore: {path: ../x.db}\nstream: {store_dir: ~/streams}"

    config = _config(folder, text, {"HOME": "/home/ann"})

    assert config.data_dir == folder / "data"
    assert config.store_path == folder.parent / "x.db"
    assert config.stream.store_dir == Path("/home/ann/streams")
    assert config.api.token_file == folder / "data" / "operator-token"


@pytest.mark.spec("E-150")
@pytest.mark.parametrize(
    ("text", "env", "expected"),
    [
        ("node: {id: a.b-C_1}", {"CREWLET_NODE_ID": "env"}, "a.b-C_1"),
        ("{}", {"CREWLET_NODE_ID": "env"}, "env"),
        ("{}", {"CREWLET_NODE_ID": ""}, "node-0"),
        ("{}", {}, "node-0"),
    ],
)
def test_a_node_is_named_by_its_file_then_its_environment_then_the_default(
    folder: Path, text: str, env: Mapping[str, str], expected: str
) -> None:
    assert _config(folder, text, env).node_id == expected


@pytest.mark.parametrize("bad", ["-a", ".a", "a b", "a/b", "é", "x" * 65])
def test_a_node_id_outside_the_grammar_is_refused_wherever_it_comes_from(folder: Path, bad: str) -> None:
    assert _problem(folder, f"node: {{id: '{bad}'}}").path == "node.id"
    assert "CREWLET_NODE_ID" in _problem(folder, "{}", {"CREWLET_NODE_ID": bad}).problem


def test_another_server_program_may_be_named_where_the_engine_runs_its_own_broker(folder: Path) -> None:
    embedded = _load(folder, "stream: {server_binary: bin/nats-server}")

    assert embedded.config.stream.server_binary == folder / "bin" / "nats-server"
    with pytest.raises(ConfigError, match=r"stream\.server_binary"):
        _load(folder, "stream: {type: nats, url: 'nats://127.0.0.1:4222', server_binary: x}")


def test_an_empty_store_dir_is_memory_and_said(folder: Path) -> None:
    loaded = _load(folder, 'stream: {store_dir: ""}')

    assert loaded.config.stream.store_dir is None
    assert loaded.config.stream.is_in_memory
    assert [warning.path for warning in loaded.warnings] == ["stream.store_dir"]


def test_an_absent_store_dir_is_not_memory(folder: Path) -> None:
    loaded = _load(folder, "stream: {store_dir: }")

    assert not loaded.config.stream.is_in_memory
    assert loaded.warnings == ()


def test_variables_are_expanded_before_reading_numbers_and_switches_too(folder: Path) -> None:
    text = "api: {port: '${PORT}', host: '${HOST}', auth: {allow_anonymous_read: '${OPEN}'}}\ndata_dir: ${D}/x"

    config = _config(folder, text, {"PORT": "9000", "HOST": "::1", "OPEN": "true", "D": "/var"})

    assert (config.api.port, config.api.host, config.api.allow_anonymous_read) == (9000, "::1", True)
    assert config.data_dir == Path("/var/x")


def test_every_unset_variable_is_named_with_its_path_and_line(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(folder, "data_dir: ${A}\napi:\n  host: ${B}\n")

    found = [(problem.path, problem.line) for problem in caught.value.problems]
    assert found == [("data_dir", 1), ("api.host", 3)]
    assert "A is not set" in caught.value.problems[0].problem


def test_a_mistyped_reference_does_not_pass_as_text(folder: Path) -> None:
    assert _problem(folder, "data_dir: ${MY-DIR}", {"MY": "x"}).path == "data_dir"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("retention: {min_age: 5}", "retention"),
        ("secrets: {active_key_id: k}", "secrets"),
        ("store: {objects: {type: s3}}", "store.objects"),
        ("logging: {file: {path: x}}", "logging.file"),
        ("api: {auth: {disabled: true}}", "api.auth.disabled"),
    ],
)
def test_what_only_a_fleet_or_a_later_part_needs_is_refused_as_not_supported_yet(
    folder: Path, text: str, path: str
) -> None:
    problem = _problem(folder, text)

    assert problem.path == path
    assert "not supported yet" in problem.problem


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("coordination: {type: embedded-kv}\nstream: {type: nats}", "stream.url"),
        ("coordination: {type: embedded-kv}\nstream: {type: nats, url: 'http://h'}", "stream.url"),
        ("coordination: {type: embedded-kv}\nstream: {type: nats, url: 'nats://h', store_dir: x}", "stream.store_dir"),
        ("coordination: {type: embedded-kv}\nstream: {type: nats, url: 'nats://h', store_dir: ''}", "stream.store_dir"),
        ("coordination: {type: embedded-kv}\nstream: {type: nats, url: 'nats://h', tls: {cert: c.pem}}", "stream.tls"),
        ("stream: {url: 'nats://h'}", "stream.url"),
        ("stream: {token: x}", "stream.token"),
        ("stream: {credentials: x}", "stream.credentials"),
        ("stream: {tls: {ca: x}}", "stream.tls"),
        ("stream: {type: nat}", "stream.type"),
        ("stream: {sync: 2m}", "stream.sync"),
        ("stream: {sync: soon}", "stream.sync"),
        ("stream: {event_retention_hours: -1}", "stream.event_retention_hours"),
        ("stream: {mailbox_max_bytes: -1}", "stream.mailbox_max_bytes"),
        ("stream: {mailbox_max_bytes: true}", "stream.mailbox_max_bytes"),
        ("stream: {event_max_bytes: 524287}", "stream.event_max_bytes"),
        ("stream: {config_max_bytes: 1GiB}", "stream.config_max_bytes"),
        ("stream: {dead_letter_max_bytes: 100000000000000000000}", "stream.dead_letter_max_bytes"),
        ("api: {port: 65536}", "api.port"),
        ("api: {port: true}", "api.port"),
        ("api: {host: 0.0.0.0}", "api.auth.tokens"),
        ("api: {host: db.example.com}", "api.auth.tokens"),
        ("api: {auth: {tokens: [{id: anonymous, token: x}]}}", "api.auth.tokens[0].id"),
        ("api: {auth: {tokens: [{id: a, token: x}, {id: a, token: y}]}}", "api.auth.tokens[1].id"),
        ("api: {auth: {tokens: [{id: a, token: x}, {id: b, token: x}]}}", "api.auth.tokens[1].token"),
        ("api: {auth: {tokens: [{id: a, token: 'x y'}]}}", "api.auth.tokens[0].token"),
        ("api: {auth: {tokens: [{id: a, token: ''}]}}", "api.auth.tokens[0].token"),
        ("api: {host: 0.0.0.0, auth: {tokens: [{id: a, token: fifteen-letters}]}}", "api.auth.tokens[0].token"),
        ("node: {max_concurrent: -1}", "node.max_concurrent"),
        ("node: {roles: [ingress]}", "node.roles"),
        ("store: {scratch: true}", "store.scratch"),
        ("logging: {level: loud}", "logging.level"),
        ("nodes: {}", "nodes"),
        ("roles: []", "roles"),
    ],
)
def test_what_does_not_fit_together_is_refused_at_its_path(folder: Path, text: str, path: str) -> None:
    assert _problem(folder, text).path == path


def test_an_address_that_others_reach_is_taken_with_a_token(folder: Path) -> None:
    config = _config(folder, f"api: {{host: 0.0.0.0, auth: {{tokens: [{{id: op, token: {_TOKEN}}}]}}}}")

    assert [(token.id, token.token) for token in config.api.tokens] == [("op", _TOKEN)]


def test_on_loopback_a_token_may_be_as_short_as_one_likes(folder: Path) -> None:
    config = _config(folder, "api: {auth: {tokens: [{id: op, token: x}]}}")

    assert [token.token for token in config.api.tokens] == ["x"]


@pytest.mark.parametrize("stream", ["mailbox", "event", "config", "dead_letter"])
def test_the_size_of_a_stream_is_taken_as_written_and_left_open_otherwise(folder: Path, stream: str) -> None:
    field = f"{stream}_max_bytes"

    config = _config(folder, f"stream: {{{field}: '${{SIZE}}'}}", {"SIZE": "600000"})

    sizes = {
        each: getattr(config.stream, f"{each}_max_bytes") for each in ("mailbox", "event", "config", "dead_letter")
    }
    assert sizes == {"mailbox": 0, "event": 0, "config": 0, "dead_letter": 0, stream: 600_000}


def test_a_size_that_is_none_is_refused_with_those_that_are(folder: Path) -> None:
    assert "524,288" in _problem(folder, "stream: {mailbox_max_bytes: 1000}").remedy


def test_no_listener_needs_no_token(folder: Path) -> None:
    assert _config(folder, "api: {host: 0.0.0.0, port: 0}").api.port == 0


def test_another_broker_is_dialled_as_written(folder: Path) -> None:
    text = "stream: {type: nats, url: 'nats://a:4222,nats://b:4222', credentials: op.creds, tls: {ca: ca.pem}}"
    text += "\ncoordination: {type: embedded-kv}"

    loaded = _load(folder, text)

    stream = loaded.config.stream
    assert (stream.url, stream.store_dir) == ("nats://a:4222,nats://b:4222", None)
    assert stream.credentials == folder / "op.creds"
    assert stream.tls is not None
    assert stream.tls.ca == folder / "ca.pem"
    assert loaded.warnings == ()


def test_leases_of_one_process_beside_a_shared_broker_are_refused(folder: Path) -> None:
    problem = _problem(folder, "stream: {type: nats, url: 'nats://h'}")

    assert (problem.path, "embedded-kv" in problem.remedy) == ("coordination.type", True)


def test_a_node_has_every_role_unless_it_says_which(folder: Path) -> None:
    assert _config(folder, "{}").roles == ("ingress", "seats", "workers", "data")
    assert _config(folder, "node: {roles: [data, seats]}").roles == ("seats", "data")


def test_labels_are_trimmed(folder: Path) -> None:
    assert _config(folder, "node: {labels: {' zone': ' b '}}").labels == {"zone": "b"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("node: {roles: [seat, data]}", "node.roles"),
        ("node: {labels: {a: b, ' a': c}}", "node.labels"),
        ("node: {labels: {' ': b}}", "node.labels"),
        ("node: {labels: {gpu: true}}", "node.labels.gpu"),
    ],
)
def test_roles_and_labels_that_say_nothing_are_refused(folder: Path, text: str, path: str) -> None:
    assert _problem(folder, text).path == path


def test_leases_may_live_with_the_stream_for_as_long_as_is_written(folder: Path) -> None:
    config = _config(folder, "coordination: {type: embedded-kv, lease_ttl_seconds: 20}")

    assert (config.coordination, config.lease_ttl_s) == ("embedded-kv", 20.0)


@pytest.mark.parametrize("seconds", [-1, 1, 5, 3601])
def test_a_lease_that_is_no_length_is_refused(folder: Path, seconds: int) -> None:
    problem = _problem(folder, f"coordination: {{lease_ttl_seconds: {seconds}}}")

    assert problem.path == "coordination.lease_ttl_seconds"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"api: {{auth: {{tokens: [{{id: op, token: {_TOKEN}}}]}}}}", "api.auth.tokens[0].token"),
        (
            f"coordination: {{type: embedded-kv}}\nstream: {{type: nats, url: 'nats://h', token: {_TOKEN}}}",
            "stream.token",
        ),
        (f"coordination: {{type: embedded-kv}}\nstream: {{type: nats, url: 'nats://u:{_TOKEN}@h'}}", "stream.url"),
    ],
)
def test_a_credential_in_clear_is_warned_about_unless_the_file_is_its_owners_alone(
    folder: Path, text: str, path: str
) -> None:
    def about_it(loaded: LoadedNode) -> list[Problem]:
        return [warning for warning in loaded.warnings if warning.path == path]

    assert about_it(_load(folder, text, mode=0o600)) == []
    (warning,) = about_it(_load(folder, text, mode=0o640))
    assert _TOKEN not in str(warning)


def test_a_credential_by_reference_is_not_warned_about(folder: Path) -> None:
    loaded = _load(folder, "api: {auth: {tokens: [{id: op, token: '${T}'}]}}", {"T": _TOKEN}, mode=0o644)

    assert loaded.warnings == ()


def test_a_configuration_shows_no_credential_when_printed(folder: Path) -> None:
    text = f"""
stream: {{type: nats, url: 'nats://u:{_TOKEN}@h', token: {_TOKEN}}}
coordination: {{type: embedded-kv}}
api: {{auth: {{tokens: [{{id: op, token: {_TOKEN}}}]}}}}
"""

    assert _TOKEN not in repr(_load(folder, text))


@pytest.mark.parametrize("load", [load_node_file, load_node_address])
def test_a_company_document_in_the_node_files_place_is_named_as_one(
    folder: Path, load: Callable[[Path, Mapping[str, str]], object]
) -> None:
    path = folder / "company.yaml"
    path.write_text("name: A\nmission: ${UNSET}\n")

    with pytest.raises(ConfigError) as caught:
        load(path, {})

    (problem,) = caught.value.problems
    assert (problem.problem, problem.remedy) == (
        "is a company document, not a node file",
        "give the node file: crewlet.yaml",
    )
