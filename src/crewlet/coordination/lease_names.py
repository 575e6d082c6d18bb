"""Names of leased resources: their kind, where their records are, and how long one may be held (S0)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from crewlet.base import limits
from crewlet.coordination.keys import key_token
from crewlet.coordination.leases import TtlTooLong
from crewlet.coordination.slots import LEASES

__all__ = [
    "check_ttl",
    "checked_kind",
    "is_under_lease_ttl",
    "kind_pattern",
    "lease_key",
    "node_resource",
    "resource_kind",
    "resource_member",
    "seat_resource",
]

_KIND: Final = re.compile(r"[-_A-Za-z0-9]{1,80}")


def seat_resource(handle: str) -> str:
    """The lease name of a seat."""
    return f"seat:{handle}"


def node_resource(node_id: str) -> str:
    """The lease name of a node's presence."""
    return f"node:{node_id}"


@lru_cache(maxsize=limits.RESOURCE_NAMES_REMEMBERED_MAX)
def resource_kind(resource: str) -> str:
    """The kind of ``resource``. Raises ``ValueError`` where a part of the name is empty or its kind is no token.

    A key of it would be found by no listing, and everybody would read the resource as free (C-059).
    """
    kind, *parts = resource.split(":")
    if not parts or not all(parts) or not _KIND.fullmatch(kind):
        raise ValueError(f"{resource!r} is not a resource: it names a kind and a member, as in 'seat:ceo'")
    return kind


def resource_member(resource: str) -> str:
    """What is behind the kind: the seat, the node, the duty."""
    return resource.partition(":")[2]


def checked_kind(kind: str) -> str:
    """``kind`` if it can address resources. Raises ``ValueError``: nothing is not the answer to that (C-058)."""
    if not _KIND.fullmatch(kind):
        raise ValueError(f"{kind!r} is not a kind of resource")
    return kind


@lru_cache(maxsize=limits.RESOURCE_NAMES_REMEMBERED_MAX)
def lease_key(resource: str) -> str:
    """Where the records of ``resource`` are: its kind is a token of its own, so that one kind can be listed alone."""
    kind = resource_kind(resource)
    return f"{kind}.{key_token(resource[len(kind) + 1 :])}"


def kind_pattern(kind: str) -> str:
    """All keys of one kind."""
    return f"{checked_kind(kind)}.>"


def is_under_lease_ttl(kind: str) -> bool:
    """Whether resources of this kind live under the lease TTL; all others are duties and claims (C-157)."""
    return kind in LEASES.classes


def check_ttl(resource: str, ttl_s: float, *, lease_ttl_s: float, duty_ttl_s: float = limits.MAX_DUTY_TTL_S) -> None:
    """Raises ``TtlTooLong`` above the ceiling of the resource's kind, ``ValueError`` for what would never be held."""
    ceiling_s = lease_ttl_s if is_under_lease_ttl(resource_kind(resource)) else duty_ttl_s
    if not ttl_s > 0:
        raise ValueError(f"ttl_s={ttl_s} would never be held")
    if ttl_s > ceiling_s:
        raise TtlTooLong(resource, ttl_s=ttl_s, ceiling_s=ceiling_s)
