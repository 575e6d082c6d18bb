"""A disk of a few megabytes that a test can fill and enlarge; only who may mount gets one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["SmallDisk", "small_disk"]


@dataclass(frozen=True)
class SmallDisk:
    """A disk under ``folder``."""

    folder: Path

    def enlarge(self, megabytes: int) -> None:
        """It has so many from now on."""
        _mount("-o", f"remount,size={megabytes}m", str(self.folder))


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Generator[SmallDisk]:
    """A disk of its own at ``folder``, gone at the end. Skips the test where this process may not mount one."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only the superuser of a Linux machine may mount a disk")
    folder.mkdir()
    if _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)) != 0:
        pytest.skip("this machine lets nobody mount a disk")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True, timeout=10)


def _mount(*arguments: str) -> int:
    return subprocess.run(["mount", *arguments], check=False, capture_output=True, timeout=10).returncode
