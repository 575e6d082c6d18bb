"""A small fleet to start from: what `crewlet init --fleet` writes."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from crewlet.base import limits
from crewlet.base.errors import StartRefused
from crewlet.config.starter_files import write_files

__all__ = ["fleet_node_names", "write_fleet"]

_TEMPLATE: Final = "fleet-node.yaml"
_COMPANY_FILES: Final = ("company.yaml", "offline.yaml")
_CLUSTER: Final = "my-fleet"
_FIRST_API_PORT: Final = 8001
_FIRST_MEMBER_PORT: Final = 6221
_TWO: Final = 2


def write_fleet(folder: Path, size: int, *, secret: str) -> tuple[Path, ...]:
    """Write ``size`` node files that fit together, and one company, into ``folder``.

    Raises ``StartRefused`` rather than overwrite any, and for a number of nodes that is no fleet.
    """
    if not limits.CLUSTER_MEMBERS_MIN <= size <= limits.CLUSTER_MEMBERS_MAX:
        raise StartRefused(_why_not(size), f"write --fleet {limits.CLUSTER_MEMBERS_MIN}")
    template = resources.files("crewlet.config.starter").joinpath(_TEMPLATE).read_text(encoding="utf-8")
    nodes = {
        f"{name}.yaml": _filled(template, index, size, secret) for index, name in enumerate(fleet_node_names(size))
    }
    return write_files(folder, _COMPANY_FILES, nodes)


def fleet_node_names(size: int) -> tuple[str, ...]:
    """What the nodes are called; each one's file is named after it."""
    return tuple(f"node-{number}" for number in range(1, size + 1))


def _filled(template: str, index: int, size: int, secret: str) -> str:
    ports = [_FIRST_MEMBER_PORT + each for each in range(size)]
    values = {
        "NODE": fleet_node_names(size)[index],
        "SIZE": str(size),
        "CLUSTER": _CLUSTER,
        "PORT": str(ports[index]),
        "PEERS": ", ".join(f'"127.0.0.1:{port}"' for port in ports if port != ports[index]),
        "SECRET": secret,
        "API_PORT": str(_FIRST_API_PORT + index),
    }
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def _why_not(size: int) -> str:
    if size == _TWO:
        return "two nodes are worse than one: when either is gone, the other has no majority and takes nothing"
    if size < _TWO:
        return f"{size} is no fleet; `crewlet init DIR` writes a node that is alone"
    return f"{size} members vote on every write; more than {limits.CLUSTER_MEMBERS_MAX} make it slower, not safer"
