from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from crewlet.api import ApiServer, ApiToken
from crewlet.api.tokens import check_guarded, operator_token, settle_tokens
from crewlet.base.errors import ConfigError, StartRefused
from tests.unit.api.small_node import SmallNode, asking, config, serving


def _mode(file: Path) -> int:
    return file.stat().st_mode & 0o777


def test_the_first_token_is_minted_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "operator-token"
    old = os.umask(0)
    try:
        token = operator_token(file)
    finally:
        os.umask(old)

    assert (file.read_text().strip(), _mode(file)) == (token, 0o600)
    assert len(token) >= 40
    assert [entry.name for entry in tmp_path.iterdir()] == ["operator-token"]


def test_a_minted_token_is_kept(tmp_path: Path) -> None:
    assert operator_token(tmp_path / "t") == operator_token(tmp_path / "t")


def test_two_nodes_mint_two_tokens(tmp_path: Path) -> None:
    assert operator_token(tmp_path / "a") != operator_token(tmp_path / "b")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_closed_to_them(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "t"
    file.write_text("kept\n")
    file.chmod(mode)

    assert (operator_token(file), _mode(file)) == ("kept", 0o600)


@pytest.mark.parametrize("content", ["", "  \n", "späte"])
def test_a_file_without_a_token_is_refused_with_the_remedy(tmp_path: Path, content: str) -> None:
    (tmp_path / "t").write_text(content)

    with pytest.raises(StartRefused, match=r"delete it, or set `api\.auth\.tokens`"):
        operator_token(tmp_path / "t")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("secret")
    (tmp_path / "t").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StartRefused, match="cannot be used"):
        operator_token(tmp_path / "t")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t", 0o600)

    with pytest.raises(StartRefused, match="no plain file"):
        operator_token(tmp_path / "t")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="cannot be used"):
        operator_token(tmp_path / "missing" / "t")


def test_no_token_is_minted_where_one_is_configured(tmp_path: Path) -> None:
    settle_tokens(config(tmp_path))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
async def test_an_open_address_without_a_token_refuses_to_start(tmp_path: Path, host: str) -> None:
    server = ApiServer(SmallNode(), config(tmp_path, tokens=(), host=host))

    with pytest.raises(StartRefused, match=r"api\.auth\.tokens"):
        await server.start()


def test_an_open_address_refuses_a_token_that_could_be_guessed(tmp_path: Path) -> None:
    tokens = (ApiToken("ada", "a-token-of-the-tests"), ApiToken("bob", "fifteen-letters"))

    with pytest.raises(StartRefused, match=r"token of bob is shorter than 16.*api\.auth\.tokens"):
        check_guarded(config(tmp_path, tokens=tokens, host="192.0.2.1"))


@pytest.mark.parametrize("token", [ApiToken("", "x"), ApiToken("x", "")])
def test_an_empty_token_is_no_token(tmp_path: Path, token: ApiToken) -> None:
    with pytest.raises(ConfigError, match=r"api\.auth\.tokens\[0\]"):
        config(tmp_path, tokens=(token,))


def test_a_token_is_not_printed_with_its_configuration(tmp_path: Path) -> None:
    assert "a-token-of-the-tests" not in repr(config(tmp_path))


@pytest.mark.slow
async def test_the_minted_token_opens_the_node_as_operator(tmp_path: Path) -> None:
    node = SmallNode()
    async with serving(node, config(tmp_path, tokens=())) as server:
        token = await asyncio.to_thread((tmp_path / "operator-token").read_text)
        async with asking(server, Authorization=f"Bearer {token.strip()}") as client:
            answer = await client.post("/seats/ceo/messages", json={"text": "hi"})

    assert answer.status_code == 202
    assert node.sent == [("ceo", "hi", "operator:operator")]


@pytest.mark.slow
async def test_with_tokens_disabled_messages_are_attributed_to_nobody_known(tmp_path: Path) -> None:
    node = SmallNode()
    async with serving(node, config(tmp_path, tokens=(), disabled=True)) as server, asking(server, X="y") as client:
        await client.post("/seats/ceo/messages", json={"text": "hi"})

    assert node.sent == [("ceo", "hi", "operator:anonymous")]
