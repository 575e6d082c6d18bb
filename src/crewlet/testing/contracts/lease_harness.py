"""What the leases' suite needs of a backend: processes that claim, time that passes, a store that can be spoiled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from crewlet.coordination import ClaimRefused, Lease, Leases, RecordStore
from crewlet.testing.contracts.contract import Capability
from crewlet.testing.contracts.lease_steps import Steps

__all__ = ["LEASE_TTL_S", "Claimant", "LeaseHarness", "Stores"]

LEASE_TTL_S = 2.0
"""The lease TTL of the suite; a broker is too coarse below."""

_SLACK_S = 0.3


@dataclass(frozen=True, slots=True)
class Stores:
    """The three buckets, as one process reaches them."""

    leases: RecordStore
    duties: RecordStore
    epochs: RecordStore

    @property
    def all(self) -> tuple[RecordStore, RecordStore, RecordStore]:
        """Each of them."""
        return self.leases, self.duties, self.epochs


@dataclass(frozen=True, slots=True)
class Claimant:
    """One process: its leases, under an owner string of its own."""

    leases: Leases
    owner: str
    node: str

    async def claim(
        self, resource: str, *, ttl_s: float = LEASE_TTL_S, data: Mapping[str, Any] | None = None
    ) -> Lease | ClaimRefused:
        """The claim, as its owner makes it."""
        return await self.leases.claim(resource, owner=self.owner, ttl_s=ttl_s, preferred=self.node, data=data)

    async def claimed(self, resource: str, *, ttl_s: float = LEASE_TTL_S) -> Lease:
        """A claim that must be granted."""
        answer = await self.claim(resource, ttl_s=ttl_s)
        assert isinstance(answer, Lease), answer
        assert answer.owner == self.owner
        return answer

    async def renewed(self, lease: Lease, *, ttl_s: float = LEASE_TTL_S) -> Lease:
        """A renewal that must be granted."""
        answer = await self.leases.renew(lease, ttl_s=ttl_s)
        assert answer is not None, f"{lease} is over"
        return answer


class LeaseHarness(ABC):
    """One case's view of one backend. What it leases is its own, so that cases may share a broker without meeting."""

    backend: ClassVar[str]
    absent: ClassVar[frozenset[Capability]] = frozenset()

    @abstractmethod
    async def claimant(self, node: str = "one", *, protocol: int | None = None, steps: Steps | None = None) -> Claimant:
        """A process of ``node``, at the shipped protocol unless another is named; ``steps`` may stop its requests."""

    @abstractmethod
    async def advance(self, seconds: float) -> None:
        """Let so much time pass: a jump where time is virtual."""

    @abstractmethod
    def now(self) -> datetime:
        """What the store's clock reads."""

    @abstractmethod
    async def disturb(self) -> None:
        """Whatever this backend must survive without anybody noticing happens now; nothing where there is no such."""

    @abstractmethod
    def stores(self, claimant: Claimant) -> Stores:
        """The stores that ``claimant`` reaches, behind the contract's back."""

    @abstractmethod
    async def cut(self, *stores: RecordStore) -> None:
        """These reach nothing from now on, and know it."""

    @abstractmethod
    async def mend(self, *stores: RecordStore) -> None:
        """Undo :meth:`cut`."""

    @abstractmethod
    def lose_reply(self, store: RecordStore) -> None:
        """The store's next write lands and its answer is lost. Whoever looks afterwards gets an answer."""

    @abstractmethod
    def cut_after_write(self, store: RecordStore) -> None:
        """The store's next write lands, and it is :meth:`cut` before the answer comes back."""

    @abstractmethod
    def withhold(self, store: RecordStore) -> None:
        """The store's next write does not arrive before :meth:`deliver`."""

    @abstractmethod
    async def deliver(self, store: RecordStore) -> None:
        """What was withheld arrives."""

    async def lapse(self, ttl_s: float = LEASE_TTL_S) -> None:
        """Return when a lease that nobody renewed is over for certain."""
        await self.advance(ttl_s + _SLACK_S)
