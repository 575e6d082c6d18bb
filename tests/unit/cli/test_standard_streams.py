"""Commands started with closed streams, on a full disk, in a shell that speaks no UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CREWLET = f"{sys.executable} -m crewlet"

pytestmark = pytest.mark.slow


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        check=False,
        timeout=20,
        env={**kept, **environment},
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_command_needs_no_stream(closed: str) -> None:
    ended = shell(f"{CREWLET} schema node {closed}")

    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_closed_input_is_an_empty_message() -> None:
    ended = shell(f"{CREWLET} ask ceo - <&-")

    assert ended.returncode == 2
    assert b"the message is empty" in ended.stderr


def test_output_that_nobody_reads_ends_quietly() -> None:
    ended = shell(f"{CREWLET} schema company | true")

    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is a device of Linux here")
@pytest.mark.parametrize("what", ["schema node", "schema company"])
def test_output_that_a_full_disk_refused_is_a_failure_in_one_line(what: str) -> None:
    ended = shell(f"{CREWLET} {what} > /dev/full")

    assert ended.returncode != 0
    assert ended.stderr.startswith(b"crewlet: ")
    assert b"No space left on device" in ended.stderr
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("message", [r"ask ceo $'\xff\xfe'", r"ask ceo - < <(printf 'a\xff')"])
def test_a_message_that_is_no_text_is_refused_by_name(message: str) -> None:
    ended = shell(f"{CREWLET} {message}")

    assert ended.returncode == 2
    assert b"text: the message is no UTF-8 text" in ended.stderr


def test_more_than_a_message_may_hold_is_not_read_to_its_end() -> None:
    ended = shell(f"{CREWLET} ask ceo - < /dev/zero")

    assert ended.returncode == 2
    assert b"the message is larger than" in ended.stderr


def test_what_an_encoding_lacks_is_written_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "größer"
    folder.mkdir()

    ended = shell(f"cd {folder} && {CREWLET} validate {folder}/none.yaml", LC_ALL="C", PYTHONUTF8="0")

    assert ended.returncode == 2
    assert b"there is no such file" in ended.stderr
