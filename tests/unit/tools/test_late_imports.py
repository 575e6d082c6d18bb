"""What a process pays that only names the tools."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_importing_the_room_does_not_import_the_sdk() -> None:
    script = "import sys, crewlet.tools; print(sorted({'mcp', 'mcp_types', 'anyio', 'httpx2'} & set(sys.modules)))"

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)

    assert ran.stdout == "[]\n"
