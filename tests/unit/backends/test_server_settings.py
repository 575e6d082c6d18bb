"""The broker's configuration and the choice of its program."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from crewlet.backends.nats import tether
from crewlet.backends.nats.binary import find_server
from crewlet.backends.nats.link import Progress, moved
from crewlet.backends.nats.server_config import (
    ClusterSettings,
    LeafListener,
    LeafRemotes,
    ServerSettings,
    server_config,
    server_environment,
)
from crewlet.base.errors import StartRefused

SETTINGS = ServerSettings(
    store_dir=Path('/data/a "quoted" $dir'),
    ports_dir=Path("/data/ports"),
    log_file=Path("/data/broker.log"),
    user_public_key="UABC",
    version=(2, 15),
)


def program(path: Path, says: str) -> Path:
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o700)
    return path


def test_each_write_is_on_disk_before_its_ack_unless_told_otherwise() -> None:
    assert "sync_interval: always\n" in server_config(SETTINGS)
    assert 'sync_interval: "2500ms"\n' in server_config(replace(SETTINGS, sync_interval_s=2.5))


def test_it_listens_on_loopback_alone() -> None:
    assert 'listen: "127.0.0.1:-1"\n' in server_config(SETTINGS)
    assert 'listen: "127.0.0.1:4300"\n' in server_config(replace(SETTINGS, port=4300))


def test_the_one_login_is_a_public_key() -> None:
    assert "users: [ { nkey: UABC } ]" in server_config(SETTINGS)


def test_a_path_is_quoted() -> None:
    assert 'store_dir: "/data/a \\"quoted\\" $dir"' in server_config(SETTINGS)


def test_the_consumer_default_is_raised_where_the_broker_has_one() -> None:
    assert "default_max_consumers: 100000" in server_config(SETTINGS)
    assert "default_max_consumers" not in server_config(replace(SETTINGS, version=(2, 14)))


def test_a_configured_program_is_used(tmp_path: Path) -> None:
    configured = program(tmp_path / "mine", "nats-server: v2.12.3")

    found = find_server(str(configured))

    assert (found.path, found.version) == (configured, (2, 12))


def test_the_packages_program_is_used_where_none_is_configured() -> None:
    found = find_server()

    assert found.path.name == "nats-server"
    assert found.version >= (2, 15)


def test_a_program_on_the_path_serves_where_the_package_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = program(tmp_path / "nats-server", "nats-server: v2.11.0")
    monkeypatch.setattr("crewlet.backends.nats.binary._PACKAGE", "no-such-package")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_server().path == on_path


def test_no_program_at_all_is_refused_with_the_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crewlet.backends.nats.binary._PACKAGE", "no-such-package")
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(StartRefused) as refused:
        find_server()

    for way in ("PATH", "stream.server_binary", "stream.type: nats"):
        assert way in refused.value.remedy


@pytest.mark.parametrize(
    ("says", "problem"), [("nats-server: v2.9.1", "2.9, which is too old"), ("hello", "does not say its version")]
)
def test_a_program_that_will_not_do_is_refused(tmp_path: Path, says: str, problem: str) -> None:
    with pytest.raises(StartRefused, match=problem):
        find_server(str(program(tmp_path / "mine", says)))


def test_a_missing_program_is_refused_by_path(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match=str(tmp_path / "none")):
        find_server(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("after", "alive"),
    [
        (Progress(5, 1000, 500), False),
        (Progress(6, 1000, 500), True),
        (Progress(5, 1001, 499), True),
        (Progress(5, 1000, 900), False),
    ],
)
def test_a_link_with_a_backlog_lives_while_it_receives_or_drains(after: Progress, alive: bool) -> None:
    assert moved(Progress(5, 1000, 500), after) is alive


def test_what_an_idle_link_takes_is_no_sign_of_life() -> None:
    assert not moved(Progress(5, 1000, 0), Progress(5, 1040, 0))


MEMBER = ClusterSettings(
    name="fleet", host="::1", port=6222, peers=("10.0.0.2:6222", "[fd00::3]:6222"), secret='a "secret" / of $ours'
)


def test_a_member_is_told_of_its_cluster_and_no_secret_is_in_the_file() -> None:
    text = server_config(replace(SETTINGS, name="node-1", cluster=MEMBER, overseer_public_key="UXYZ"))

    for part in ('server_name: "node-1"', 'name: "fleet"', 'listen: "[::1]:6222"', "no_advertise: true", "nkey: UXYZ"):
        assert part in text
    assert MEMBER.secret not in text
    assert "secret" not in repr(MEMBER)


def test_a_members_environment_holds_the_routes_with_the_secret_as_the_broker_reads_them() -> None:
    given = server_environment(replace(SETTINGS, cluster=MEMBER))

    shown = "member:a%20%22secret%22%20%2F%20of%20%24ours"
    assert [json.loads(value) for value in given.values()] == [
        [f"nats-route://{shown}@10.0.0.2:6222", f"nats-route://{shown}@[fd00::3]:6222"],
        MEMBER.secret,
    ]
    assert not server_environment(SETTINGS)


def test_every_variable_that_a_members_file_names_passes_to_its_program() -> None:
    settings = replace(SETTINGS, cluster=MEMBER)

    named = {*re.findall(r"\$([A-Z_]+)", server_config(settings))}

    assert named == {*server_environment(settings)}
    assert named <= {*tether.PASSED_ON}


def test_a_cluster_without_a_secret_asks_for_none() -> None:
    open_to_all = replace(SETTINGS, cluster=replace(MEMBER, secret=""))

    assert "password" not in server_config(open_to_all)
    assert not any("@" in value for value in server_environment(open_to_all).values())


LISTENER = LeafListener(host="::1", port=7422, secret='a "secret" of $ours')
REMOTES = LeafRemotes(members=("10.0.0.1:7422", "10.0.0.2:7422"), secret='a "secret" of $ours')


@pytest.mark.spec("E-007")
def test_a_satellites_broker_stores_nothing_and_dials_those_who_do() -> None:
    settings = replace(SETTINGS, leaf_remotes=REMOTES)
    text, given = server_config(settings), server_environment(settings)

    shown = "satellite:a%20%22secret%22%20of%20%24ours"
    assert "jetstream {" not in text
    assert [json.loads(value) for value in given.values()] == [
        [f"nats-leaf://{shown}@10.0.0.1:7422", f"nats-leaf://{shown}@10.0.0.2:7422"]
    ]


def test_where_satellites_are_taken_they_show_the_secret_and_it_is_in_no_file() -> None:
    settings = replace(SETTINGS, leaf_listener=LISTENER)
    text, given = server_config(settings), server_environment(settings)

    assert 'listen: "[::1]:7422"' in text
    assert [json.loads(value) for value in given.values()] == [LISTENER.secret]
    assert LISTENER.secret not in text
    assert "secret" not in repr(LISTENER) + repr(REMOTES)


@pytest.mark.parametrize(
    "settings", [replace(SETTINGS, leaf_listener=LISTENER), replace(SETTINGS, leaf_remotes=REMOTES)]
)
def test_every_variable_that_either_end_of_a_leafs_link_names_passes_to_its_program(settings: ServerSettings) -> None:
    named = {*re.findall(r"\$([A-Z_]{2,})", server_config(settings))}

    assert named == {*server_environment(settings)}
    assert named <= {*tether.PASSED_ON}


def test_both_ends_show_the_same_where_no_secret_is_asked() -> None:
    asked = server_environment(replace(SETTINGS, leaf_listener=replace(LISTENER, secret="")))
    shown = server_environment(replace(SETTINGS, leaf_remotes=replace(REMOTES, secret="")))

    (word,) = (json.loads(value) for value in asked.values())
    assert all(f"satellite:{word}@" in value for value in shown.values())
