from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_importing_the_api_loads_no_web_framework() -> None:
    code = "import sys, crewlet.api; print([m for m in ('fastapi', 'starlette', 'uvicorn') if m in sys.modules])"

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)

    assert said.stdout.strip() == "[]"
