"""What a node file may say of a cluster, and what does not go together there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crewlet.base.errors import ConfigError, Problem
from crewlet.config import LoadedNode, load_node_file

SECRET = "a-secret-of-the-fleet"


def member(**changes: object) -> dict[str, Any]:
    """The file of a sound member; a name with a double underscore changes a field of the cluster."""
    cluster: dict[str, object] = {
        "name": "c",
        "port": 6221,
        "peers": ["10.0.0.2:6221", "10.0.0.3:6221"],
        "secret": SECRET,
    }
    cluster |= {name.removeprefix("cluster__"): value for name, value in changes.items() if "__" in name}
    stream = {"cluster": {name: value for name, value in cluster.items() if value is not None}}
    stream |= {name: value for name, value in changes.items() if "__" not in name}
    return {"coordination": {"type": "embedded-kv"}, "stream": stream}


def loaded(folder: Path, content: dict[str, Any], env: dict[str, str] | None = None) -> LoadedNode:
    file = folder / "crewlet.yaml"
    file.write_text(json.dumps(content))
    file.chmod(0o600)
    return load_node_file(file, env or {})


def problem(folder: Path, content: dict[str, Any]) -> Problem:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, content)
    assert len(caught.value.problems) == 1, str(caught.value)
    return caught.value.problems[0]


def test_three_members_keep_three_copies_unless_told_otherwise(tmp_path: Path) -> None:
    stream = loaded(tmp_path, member()).config.stream
    told = loaded(tmp_path, member(replicas=1)).config.stream

    assert (stream.replicas, told.replicas) == (3, 1)
    assert stream.cluster is not None
    assert (stream.cluster.name, stream.cluster.host, stream.cluster.port) == ("c", "127.0.0.1", 6221)
    assert stream.cluster.peers == ("10.0.0.2:6221", "10.0.0.3:6221")
    assert SECRET not in repr(stream)


def test_a_broker_that_is_alone_keeps_one_copy(tmp_path: Path) -> None:
    stream = loaded(tmp_path, {}).config.stream

    assert (stream.replicas, stream.cluster) == (1, None)


def test_a_member_may_stand_among_its_own_peers_so_that_the_list_is_the_same_everywhere(tmp_path: Path) -> None:
    everywhere = ["nats://127.0.0.1:6221", "nats-route://localhost:6222", "127.0.0.1:6223"]
    cluster = loaded(tmp_path, member(cluster__peers=everywhere)).config.stream.cluster

    assert cluster is not None
    assert cluster.peers == ("localhost:6222", "127.0.0.1:6223")


def test_a_member_knows_itself_by_what_it_advertises(tmp_path: Path) -> None:
    peers = ["10.0.0.1:7000", "10.0.0.2:7000", "10.0.0.3:7000"]
    changed = member(cluster__host="0.0.0.0", cluster__advertise="10.0.0.1:7000", cluster__peers=peers)
    cluster = loaded(tmp_path, changed).config.stream.cluster

    assert cluster is not None
    assert cluster.peers == ("10.0.0.2:7000", "10.0.0.3:7000")


def test_the_secret_comes_from_a_variable_too(tmp_path: Path) -> None:
    content = member(cluster__secret="${FLEET}")
    cluster = loaded(tmp_path, content, {"FLEET": SECRET}).config.stream.cluster

    assert cluster is not None
    assert cluster.secret == SECRET


@pytest.mark.spec("S-217")
def test_leases_of_this_process_alone_are_refused_in_a_cluster_naming_the_way_out(tmp_path: Path) -> None:
    refused = problem(tmp_path, {**member(), "coordination": {"type": "local"}})

    assert refused.path == "coordination.type"
    assert "embedded-kv" in refused.remedy


@pytest.mark.spec("S-217")
def test_leases_of_this_process_alone_are_refused_beside_a_broker_of_others_naming_the_way_out(tmp_path: Path) -> None:
    refused = problem(tmp_path, {"stream": {"type": "nats", "url": "nats://h"}, "coordination": {"type": "local"}})

    assert refused.path == "coordination.type"
    assert "embedded-kv" in refused.remedy


def test_two_members_are_refused_and_told_why(tmp_path: Path) -> None:
    refused = problem(tmp_path, member(cluster__peers=["10.0.0.2:6221"]))

    assert refused.path == "stream.cluster.peers"
    assert "two members" in refused.problem
    assert "one or three" in refused.remedy


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"cluster__name": None}, "stream.cluster.name"),
        ({"cluster__name": "a b"}, "stream.cluster.name"),
        ({"cluster__port": None}, "stream.cluster.port"),
        ({"cluster__port": 8000}, "stream.cluster.port"),
        ({"cluster__peers": None}, "stream.cluster.peers"),
        ({"cluster__peers": ["127.0.0.1:6221"]}, "stream.cluster.peers"),
        ({"cluster__peers": [f"10.0.0.{n}:1" for n in range(2, 7)]}, "stream.cluster.peers"),
        ({"cluster__peers": ["10.0.0.2:1", "10.0.0.3"]}, "stream.cluster.peers[1]"),
        ({"cluster__peers": ["10.0.0.2:1", "10.0.0.3:70000"]}, "stream.cluster.peers[1]"),
        ({"cluster__peers": ["10.0.0.2:1", "nats://x:y@10.0.0.3:1"]}, "stream.cluster.peers[1]"),
        ({"cluster__peers": ["10.0.0.2:1", "10.0.0.3:1", "nats://10.0.0.2:1"]}, "stream.cluster.peers[2]"),
        ({"cluster__host": "0.0.0.0", "cluster__secret": None}, "stream.cluster.secret"),
        ({"cluster__host": "node-1.internal", "cluster__secret": None}, "stream.cluster.secret"),
        ({"cluster__secret": "short"}, "stream.cluster.secret"),
        ({"cluster__secret": "a secret with spaces in it"}, "stream.cluster.secret"),
        ({"cluster__advertise": "10.0.0.1"}, "stream.cluster.advertise"),
        ({"store_dir": ""}, "stream.store_dir"),
        ({"replicas": 2}, "stream.replicas"),
        ({"replicas": 5}, "stream.replicas"),
        ({"replicas": 1, "sync": "1s"}, "stream.sync"),
        ({"sync": "0s", "cluster__host": "10.0.0.1"}, "stream.sync"),
        ({"sync": "3m", "cluster__host": "10.0.0.1"}, "stream.sync"),
        ({"sync": "1s", "cluster__peers": ["127.0.0.1:1", "127.0.0.1:2"]}, "stream.sync"),
        ({"sync": "1s", "cluster__host": "10.0.0.1", "cluster__peers": ["10.0.0.1:1", "10.0.0.2:1"]}, "stream.sync"),
    ],
)
def test_what_does_not_make_a_cluster_is_refused_at_its_path_with_a_way_out(
    tmp_path: Path, changes: dict[str, Any], path: str
) -> None:
    refused = problem(tmp_path, member(**changes))

    assert refused.path == path
    assert refused.remedy
    assert SECRET not in str(refused)


def test_writes_may_wait_for_the_disk_where_three_machines_hold_them(tmp_path: Path) -> None:
    stream = loaded(tmp_path, member(sync="1s", cluster__host="10.0.0.1")).config.stream

    assert stream.sync_interval_s == 1.0


def test_copies_without_members_to_keep_them_are_refused(tmp_path: Path) -> None:
    refused = problem(tmp_path, {"stream": {"replicas": 3}})

    assert refused.path == "stream.replicas"
    assert "stream.cluster" in refused.remedy


def test_a_broker_of_others_has_its_own_cluster_and_keeps_as_many_copies_as_asked_for(tmp_path: Path) -> None:
    dialled = {"type": "nats", "url": "nats://h", "replicas": 3}
    content = {"coordination": {"type": "embedded-kv"}, "stream": dialled}

    assert loaded(tmp_path, content).config.stream.replicas == 3
    assert problem(tmp_path, {**content, "stream": {**dialled, "cluster": {"name": "c"}}}).path == "stream.cluster"


@pytest.mark.parametrize("stream", [member()["stream"], {"type": "nats", "url": "nats://h", "replicas": 3}])
def test_a_lease_shorter_than_an_election_takes_is_refused_with_three_copies(
    tmp_path: Path, stream: dict[str, Any]
) -> None:
    def with_ttl(seconds: int) -> dict[str, Any]:
        return {"stream": stream, "coordination": {"type": "embedded-kv", "lease_ttl_seconds": seconds}}

    refused = problem(tmp_path, with_ttl(14))

    assert refused.path == "coordination.lease_ttl_seconds"
    assert loaded(tmp_path, with_ttl(15)).config.lease_ttl_s == 15.0


def test_one_copy_in_a_cluster_and_no_secret_are_warned_of(tmp_path: Path) -> None:
    warned = loaded(tmp_path, member(replicas=1, cluster__secret=None)).warnings

    assert {each.path for each in warned} == {"stream.replicas", "stream.cluster.secret"}


def test_a_secret_in_a_file_that_others_read_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "crewlet.yaml"
    file.write_text(json.dumps(member()))
    file.chmod(0o644)

    assert [each.path for each in load_node_file(file, {}).warnings] == ["stream.cluster.secret"]
