"""Which node a command talks to, and which token it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.base.errors import ConfigError
from crewlet.cli.whereabouts import find_node


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def node_file(path: Path, *, host: str = "127.0.0.1", port: int = 8123, data_dir: str = "data") -> str:
    guard = "auth: {tokens: [{id: a, token: '${T}'}]}"
    return write(path, f"data_dir: {data_dir}\napi: {{host: '{host}', port: {port}, {guard}}}")


ENVIRONMENT = {"T": "listed-for-the-server"}


def test_nothing_at_all_means_the_default_address_without_a_token() -> None:
    found = find_node("", "", {})

    assert (found.url, found.token, found.headers()) == ("http://127.0.0.1:8000", "", {})
    assert "operator-token cannot be read" in found.found_in


def test_the_node_file_of_this_folder_says_where_the_node_is(here: Path) -> None:
    node_file(here / "crewlet.yaml", port=8123)

    assert find_node("", "", ENVIRONMENT).url == "http://127.0.0.1:8123"


def test_a_named_node_file_goes_before_that_of_this_folder(here: Path) -> None:
    node_file(here / "crewlet.yaml", port=8123)

    assert find_node("", node_file(here / "other" / "n.yaml", port=8124), ENVIRONMENT).url == "http://127.0.0.1:8124"


def test_an_address_goes_before_any_file(here: Path) -> None:
    named = node_file(here / "n.yaml")

    assert find_node("https://node.example/", named, ENVIRONMENT).url == "https://node.example"


def test_the_token_of_the_environment_goes_before_that_of_the_data_directory(here: Path) -> None:
    named = node_file(here / "n.yaml")
    write(here / "data" / "operator-token", "from-the-file\n")

    from_file = find_node("", named, ENVIRONMENT)
    from_environment = find_node("", named, {**ENVIRONMENT, "CREWLET_API_TOKEN": "from-outside\n"})

    assert (from_file.token, from_environment.token) == ("from-the-file", "from-outside")
    assert from_environment.found_in == "CREWLET_API_TOKEN"
    assert from_environment.headers() == {"Authorization": "Bearer from-outside"}


def test_without_a_node_file_the_token_lies_in_the_default_data_directory(here: Path) -> None:
    write(here / ".crewlet" / "operator-token", "minted")

    assert find_node("http://127.0.0.1:9", "", {}).token == "minted"


@pytest.mark.parametrize("token_file", ["a folder", "no text"])
def test_a_token_file_that_cannot_be_read_is_said_and_costs_the_token_alone(here: Path, token_file: str) -> None:
    path = here / ".crewlet" / "operator-token"
    path.parent.mkdir()
    if token_file == "a folder":
        path.mkdir()
    else:
        path.write_bytes(b"\xff\xfe\x00")

    found = find_node("", "", {})

    assert (found.token, found.url) == ("", "http://127.0.0.1:8000")
    assert "operator-token" in found.found_in


@pytest.mark.parametrize("token", ["two\nlines", "schlüssel", "a\x00b"])
def test_a_token_that_no_header_can_carry_is_refused_unshown(token: str) -> None:
    with pytest.raises(ConfigError) as refused:
        find_node("", "", {"CREWLET_API_TOKEN": token})

    assert "CREWLET_API_TOKEN" in str(refused.value)
    assert token not in str(refused.value)


def test_a_token_is_not_shown_where_its_node_is_printed() -> None:
    assert "secret-token" not in repr(find_node("", "", {"CREWLET_API_TOKEN": "secret-token"}))


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:8123"),
        ("::", "http://127.0.0.1:8123"),
        ("::1", "http://[::1]:8123"),
        ("fd00::5", "http://[fd00::5]:8123"),
        ("node.internal", "http://node.internal:8123"),
    ],
)
def test_the_host_that_a_node_listens_on_becomes_one_that_can_be_dialled(here: Path, host: str, address: str) -> None:
    assert find_node("", node_file(here / "n.yaml", host=host), ENVIRONMENT).url == address


def test_a_node_without_an_api_is_said_before_anything_is_dialled(here: Path) -> None:
    with pytest.raises(ConfigError, match=r"api\.port"):
        find_node("", node_file(here / "n.yaml", port=0), ENVIRONMENT)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://a", "http://", "http://[::1", "http://a:b", "http://a:99999", "http://a b"]
)
def test_an_address_that_is_none_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(ConfigError, match="write it like http"):
        find_node(url, "", {})


def test_a_named_node_file_that_is_missing_is_refused(here: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        find_node("", "nowhere.yaml", {})


def test_what_the_node_alone_needs_is_not_asked_of_who_talks_to_it(here: Path) -> None:
    secrets = "stream: {type: nats, url: 'nats://h', token: '${BROKER}'}\napi: {port: 8123, auth: {tokens: ['${T}']}}"
    write(here / "crewlet.yaml", secrets)
    write(here / ".crewlet" / "operator-token", "minted")

    found = find_node("", "", {})

    assert (found.url, found.token) == ("http://127.0.0.1:8123", "minted")


@pytest.mark.parametrize("text", ["api: {port: '${PORT}'}", "api: {port: many}", "api: []", "data_dir: 5"])
def test_an_address_that_cannot_be_read_is_refused_with_the_file(here: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"crewlet\.yaml.*(api|data_dir)"):
        find_node("", write(here / "crewlet.yaml", text), {})


def test_a_broken_node_file_that_only_lies_here_is_no_matter_where_nothing_is_wanted_of_it(here: Path) -> None:
    write(here / "crewlet.yaml", "api: [")

    found = find_node("http://127.0.0.1:9", "", {"CREWLET_API_TOKEN": "t"})

    assert (found.url, found.token) == ("http://127.0.0.1:9", "t")
