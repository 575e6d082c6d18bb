"""What a node file may say of satellites, and what does not go together there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from crewlet.base.errors import ConfigError, Problem
from crewlet.config import LoadedNode, load_company, load_node_file

SECRET = "a-secret-of-satellites"
EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet" / "satellite.yaml"
Json = dict[str, Any]
KV: Json = {"type": "embedded-kv"}


def satellite(*, leaf: Json | None = None, stream: Json | None = None, **parts: object) -> Json:
    """The file of a sound satellite, with changes; a part of ``None`` is left out."""
    urls = ["nats-leaf://10.0.0.1:7422", "nats://10.0.0.2:7422/"]
    content: Json = {
        "node": {"roles": ["seats"]},
        "store": {"scratch": True},
        "coordination": KV,
        "stream": {"leaf": {"urls": urls, "secret": SECRET, **(leaf or {})}, **(stream or {})},
        **parts,
    }
    return {name: part for name, part in content.items() if part is not None}


def hub(*, leaf: Json | None = None, stream: Json | None = None, **parts: object) -> Json:
    """The file of a sound node that takes satellites, with changes."""
    listener = {"host": "0.0.0.0", "port": 7422, "secret": SECRET, **(leaf or {})}
    content: Json = {"coordination": KV, "stream": {"leaf": listener, **(stream or {})}, **parts}
    return {name: part for name, part in content.items() if part is not None}


def loaded(folder: Path, content: Json) -> LoadedNode:
    file = folder / "crewlet.yaml"
    file.write_text(json.dumps(content))
    file.chmod(0o600)
    return load_node_file(file, {})


def problem(folder: Path, content: Json) -> Problem:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, content)
    assert len(caught.value.problems) == 1, str(caught.value)
    return caught.value.problems[0]


@pytest.mark.spec("E-007")
def test_a_satellite_dials_its_members_and_has_no_store_of_its_own(tmp_path: Path) -> None:
    config = loaded(tmp_path, satellite()).config

    assert config.stream.satellite is not None
    assert config.stream.satellite.members == ("10.0.0.1:7422", "10.0.0.2:7422")
    assert (config.stream.leaf_listener, config.stream.cluster, config.keeps_events) == (None, None, False)
    assert SECRET not in repr(config)


def test_what_a_node_has_kept_is_not_the_scratch_of_the_satellite_that_it_becomes(tmp_path: Path) -> None:
    before, after = loaded(tmp_path, {}).config, loaded(tmp_path, satellite()).config

    assert (before.store_scratch, after.store_scratch) == (False, True)
    assert before.store_path != after.store_path
    assert before.stream.store_dir != after.stream.store_dir


def test_a_node_that_takes_satellites_says_where(tmp_path: Path) -> None:
    config = loaded(tmp_path, hub()).config

    assert config.stream.leaf_listener is not None
    assert (config.stream.leaf_listener.host, config.stream.leaf_listener.port) == ("0.0.0.0", 7422)
    assert (config.stream.satellite, config.keeps_events) == (None, True)
    assert SECRET not in repr(config)


def test_on_loopback_no_secret_is_needed_and_one_is_advised(tmp_path: Path) -> None:
    far = loaded(tmp_path, satellite(leaf={"urls": ["127.0.0.1:7422"], "secret": ""}))
    near = loaded(tmp_path, hub(leaf={"host": "127.0.0.1", "secret": ""}))

    assert far.config.stream.satellite is not None
    assert [warning.path for warning in near.warnings] == ["stream.leaf.secret"]


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (hub(leaf={"secret": ""}), "stream.leaf.secret"),
        (hub(leaf={"secret": "short"}), "stream.leaf.secret"),
        (hub(leaf={"port": 8000}), "stream.leaf.port"),
        (hub(leaf={"port": 0}), "stream.leaf"),
        (hub(stream={"store_dir": ""}), "stream.store_dir"),
        (hub(coordination=None), "coordination.type"),
        (hub(stream={"type": "nats", "url": "nats://h"}), "stream.leaf"),
        (hub(store={"scratch": True}), "store.scratch"),
        (hub(node={"roles": ["seats"]}), "node.roles"),
        (satellite(leaf={"secret": ""}), "stream.leaf.secret"),
        (satellite(leaf={"port": 7423}), "stream.leaf.port"),
        (satellite(leaf={"urls": ["10.0.0.1"]}), "stream.leaf.urls[0]"),
        (satellite(leaf={"urls": ["nats-leaf://a:b@10.0.0.1:7422"]}), "stream.leaf.urls[0]"),
        (satellite(stream={"store_dir": "here"}), "stream.store_dir"),
        (satellite(stream={"store_dir": ""}), "stream.store_dir"),
        (satellite(stream={"event_max_bytes": 600_000}), "stream.event_max_bytes"),
        (satellite(stream={"event_retention_hours": 5}), "stream.event_retention_hours"),
        (satellite(node=None), "node.roles"),
        (satellite(node={"roles": ["seats", "data"]}), "node.roles"),
        (satellite(store=None), "store.scratch"),
        (satellite(coordination=None), "coordination.type"),
    ],
)
def test_what_does_not_go_together_is_refused_at_its_path_with_a_way_out(
    tmp_path: Path, content: Json, path: str
) -> None:
    refused = problem(tmp_path, content)

    assert refused.path == path
    assert refused.remedy
    assert SECRET not in str(refused)


def test_the_example_of_a_satellite_is_one(tmp_path: Path) -> None:
    file = tmp_path / "satellite.yaml"
    file.write_bytes(EXAMPLE.read_bytes())
    config = load_node_file(file, {"CREWLET_LEAF_SECRET": SECRET}).config

    assert config.stream.satellite is not None
    assert config.roles == ("seats",)


def test_a_role_may_ask_for_the_examples_label_as_the_example_says(tmp_path: Path) -> None:
    said = re.findall(r"`(placement: .*)`", EXAMPLE.read_text())
    company = tmp_path / "company.yaml"
    company.write_text(f"name: Ours\nroles:\n  - name: Printer\n    {said[0]}\n")

    (seat,) = load_company(company).document.roles

    assert seat.placement.labels == load_node_file(EXAMPLE, {"CREWLET_LEAF_SECRET": SECRET}).config.labels
