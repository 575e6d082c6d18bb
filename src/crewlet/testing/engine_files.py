"""The folder that an engine under test runs in: its node file, its company document, and a port of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crewlet.testing.ports import free_port

__all__ = ["EngineFiles", "write_engine_files"]


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """Where one engine's files are, and the port of its API."""

    directory: Path
    port: int

    @property
    def node_file(self) -> Path:
        """The node file."""
        return self.directory / "crewlet.yaml"

    @property
    def company_file(self) -> Path:
        """The company document."""
        return self.directory / "company.yaml"

    @property
    def data_dir(self) -> Path:
        """What the engine keeps."""
        return self.directory / ".crewlet"

    @property
    def database(self) -> Path:
        """The node's own database."""
        return self.data_dir / "crewlet.db"

    @property
    def token_file(self) -> Path:
        """The operator's first token."""
        return self.data_dir / "operator-token"

    @property
    def url(self) -> str:
        """The API's address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def run_options(self) -> tuple[str, ...]:
        """What ``run`` is called with."""
        return ("-c", str(self.node_file), "--company", str(self.company_file))


async def write_engine_files(
    directory: Path, company: Mapping[str, Any], *, node: Mapping[str, Any] | None = None
) -> EngineFiles:
    """Write both files; ``node`` replaces whole sections of the node file. The port is free now.

    JSON is YAML, so that is what is written.
    """
    files = EngineFiles(directory, free_port())
    settings: dict[str, Any] = {
        "data_dir": "./.crewlet",
        "stream": {"type": "embedded"},
        "api": {"host": "127.0.0.1", "port": files.port},
        "logging": {"level": "info", "format": "text"},
        **(node or {}),
    }
    await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
    await asyncio.to_thread(files.node_file.write_text, json.dumps(settings, indent=2), encoding="utf-8")
    await asyncio.to_thread(files.company_file.write_text, json.dumps(company, indent=2), encoding="utf-8")
    return files
