"""Whose store a directory is: of a broker that is alone, or of one member of one cluster.

A broker that finds the other kind starts without a word: alone, it does not see what it kept as a member, and as a
member it takes up what it kept alone beside peers that never had it. Both are refused here instead.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from crewlet.base.errors import StartRefused

__all__ = ["claim_store"]

_FILE: Final = "member.json"
_REMEDY: Final = "name another folder in stream.store_dir; what this one holds stays where it is"


def claim_store(directory: Path, *, member: str, cluster: str) -> None:
    """The directory is written down as this member's; ``cluster`` is empty for a broker that is alone.

    Raises ``StartRefused`` where it is another's, ``OSError``.
    """
    file = directory / _FILE
    found = _read(file)
    if not cluster:
        if found is not None:
            raise StartRefused(
                f"{directory} is the store of {_told(found)}, and a broker that is alone would not see what it holds",
                f"give stream.cluster back to the node file, or {_REMEDY}",
            )
        return
    ours = {"cluster": cluster, "member": member}
    if found is None and any(directory.glob("jetstream/*/streams/*")):
        raise StartRefused(
            f"{directory} is the store of a broker that was alone, and the cluster {cluster} would not take over what"
            " it holds",
            _REMEDY,
        )
    if found is not None and found != ours:
        raise StartRefused(f"{directory} is the store of {_told(found)}, not of {_told(ours)}", _REMEDY)
    if found is None:
        file.write_text(json.dumps(ours), encoding="utf-8")


def _read(file: Path) -> dict[str, Any] | None:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        # Half written by a process that was killed: before its broker had ever run.
        return None


def _told(owner: dict[str, Any]) -> str:
    return f"the member {owner.get('member')} of the cluster {owner.get('cluster')}"
