"""What `crewlet init` writes, and the example that ships."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from crewlet.base.errors import StartRefused
from crewlet.config import (
    STARTER_FILES,
    Variables,
    fleet_node_names,
    load_company,
    load_node_file,
    models_without_keys,
    prepare_data_directory,
    write_fleet,
    write_starter,
)
from crewlet.llm.script import load_script
from crewlet.org import Organization, Phase

_EXAMPLE = Path(__file__).parents[3] / "examples" / "company"


def _chains(organization: Organization, env: dict[str, str]) -> set[tuple[str, ...]]:
    skipped = models_without_keys(organization, Variables(env))
    seats = organization.agent_seats
    return {organization.model_chain(seat, phase, skipped=skipped) for seat in seats for phase in Phase}


@pytest.fixture
def starter(tmp_path: Path) -> Path:
    folder = tmp_path / "new" / "company"
    write_starter(folder)
    return folder


def test_a_starter_is_valid_without_any_warning(starter: Path) -> None:
    assert load_node_file(starter / "crewlet.yaml", {}).warnings == ()
    assert load_company(starter / "company.yaml").warnings == ()
    assert load_script(starter / "offline.yaml").replies


def test_a_starter_never_overwrites(tmp_path: Path) -> None:
    mine = tmp_path / "company.yaml"
    mine.write_text("mine")

    with pytest.raises(StartRefused, match=r"company\.yaml"):
        write_starter(tmp_path)

    assert mine.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["company.yaml"]


def test_a_starters_node_file_is_its_owners_alone(starter: Path) -> None:
    assert stat.S_IMODE((starter / "crewlet.yaml").stat().st_mode) == 0o600
    assert sorted(path.name for path in starter.iterdir()) == sorted(STARTER_FILES)


@pytest.mark.parametrize("size", [3, 5])
def test_the_files_of_a_fleet_fit_together_and_are_their_owners_alone(tmp_path: Path, size: int) -> None:
    write_fleet(tmp_path, size, secret="a-secret-of-the-fleet")
    names = fleet_node_names(size)
    loaded = [load_node_file(tmp_path / f"{name}.yaml", {}) for name in names]

    clusters = [node.config.stream.cluster for node in loaded]
    at = {f"127.0.0.1:{cluster.port}" for cluster in clusters if cluster is not None}
    assert [node.warnings for node in loaded] == [()] * size
    assert [node.config.node_id for node in loaded] == list(names)
    assert len({node.config.data_dir for node in loaded}) == len({node.config.api.port for node in loaded}) == size
    assert len(at) == size
    for cluster in clusters:
        assert cluster is not None
        assert {*cluster.peers} == at - {f"127.0.0.1:{cluster.port}"}
        assert cluster.secret == "a-secret-of-the-fleet"
    assert {stat.S_IMODE((tmp_path / f"{name}.yaml").stat().st_mode) for name in names} == {0o600}
    assert load_company(tmp_path / "company.yaml").warnings == ()
    assert load_script(tmp_path / "offline.yaml").replies


@pytest.mark.parametrize(
    ("env", "chain"),
    [
        ({}, ("offline",)),
        ({"ANTHROPIC_API_KEY": "k"}, ("claude",)),
        ({"OPENAI_API_KEY": "k"}, ("gpt",)),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, ("claude", "gpt")),
    ],
)
def test_starter_and_example_use_a_real_model_as_soon_as_a_key_is_set(
    starter: Path, env: dict[str, str], chain: tuple[str, ...]
) -> None:
    for folder in (starter, _EXAMPLE):
        organization = load_company(folder / "company.yaml").organization

        assert _chains(organization, env) == {chain}


def test_the_example_is_one_person_and_three_agents_in_a_line() -> None:
    company = load_company(_EXAMPLE / "company.yaml")
    organization = company.organization

    assert company.warnings == ()
    assert {seat.handle: seat.manages for seat in organization.seats} == {
        "founder": ("ceo",),
        "ceo": ("cto",),
        "cto": ("engineer",),
        "engineer": (),
    }
    assert organization.human_seats[0].contact == {"crewlet_operator_id": "operator"}
    assert [server.name for server in organization.tool_servers] == ["notes"]
    # Its node file stands in the repository's root, so that the commands typed there find the node without options.
    root = _EXAMPLE.parents[1]
    assert load_node_file(root / "crewlet.yaml", {}).config.data_dir == root / ".crewlet"


def test_the_data_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"

    prepare_data_directory(folder)
    prepare_data_directory(folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_data_directory_that_cannot_be_written_refuses_the_start(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")

    with pytest.raises(StartRefused, match="data_dir"):
        prepare_data_directory(blocker / "data")
