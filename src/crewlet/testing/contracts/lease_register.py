"""What a lease may say, given what was asked of it and what went wrong: a model of one resource, without any store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from crewlet.coordination import ClaimRefused, Lease

__all__ = ["Register"]

_MARGIN = timedelta(seconds=0.25)
"""How far the store's deadline may be off for whoever looks at the store's clock from here."""
_PAST = datetime(1, 1, 2, tzinfo=UTC)
_NEVER = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Register:
    """One resource: its last tenure, how that ended, and which failed claims may still be in the way.

    ``left`` says how the last tenure that anybody acted on was left: in order, not in order, or nobody can tell.
    """

    granted: Lease | None = None
    ends_first: datetime = _PAST
    ends_last: datetime = _PAST
    released: Literal["no", "perhaps", "yes"] = "no"
    left: Literal["in order", "not in order", "unknown"] = "not in order"
    issued: int = 0
    in_the_way: dict[str, datetime] = field(default_factory=dict[str, datetime])

    def grant(self, lease: Lease, now: datetime) -> None:
        """A claim was granted. Raises ``AssertionError`` where it must not have been."""
        assert lease.epoch > self.issued, f"epoch {lease.epoch} after {self.issued}"
        assert not self._is_surely_held(now), f"{lease} beside {self.granted}"
        if self.left != "unknown":
            assert lease.after_lapse == (self.left == "not in order"), f"{lease}: the one before was left {self.left}"
        self._begin(lease)

    def refuse(self, refused: ClaimRefused, now: datetime) -> None:
        """A claim was refused, by whom it names. Raises ``AssertionError`` where nobody by that name can hold it."""
        holds = self.granted is not None and self.granted.owner == refused.holder and self._is_maybe_held(now)
        was_in_the_way = self.in_the_way.get(refused.holder, _PAST) + _MARGIN > now
        assert holds or was_in_the_way, f"{refused}, and nobody by that name"

    def fail(self, owner: str, until: datetime | None) -> None:
        """A claim failed and may be in the way until then, or nobody knows how long."""
        self.in_the_way[owner] = max(self.in_the_way.get(owner, _PAST), until or _NEVER)
        if self.released != "no":
            self.left = "unknown"

    def give_up(self, owner: str, standing: Lease | None, now: datetime) -> None:
        """A claim of ``owner`` was given up with its store well; ``standing`` is what is there now."""
        if standing is None or standing.owner != owner or self.in_the_way.get(owner, _PAST) > now:
            return
        if self.granted is not None and standing.epoch == self.granted.epoch:
            return
        # It had been had already, unheard: nobody acts on it, and it lapses.
        assert standing.epoch > self.issued, f"{standing} is a claim that nobody makes any more"
        assert not self._is_surely_held(now), f"{standing} beside {self.granted}"
        self._begin(standing)
        self.left = "unknown"

    def renew(self, lease: Lease, renewed: Lease | None, now: datetime) -> None:
        """A renewal was answered."""
        is_it = self.granted is not None and (self.granted.owner, self.granted.epoch) == (lease.owner, lease.epoch)
        if renewed is None:
            assert not (is_it and self._is_surely_held(now)), f"{lease} is over by its renewal, and stands"
            return
        assert is_it, f"{renewed} beside {self.granted}"
        assert self._is_maybe_held(now), f"{renewed} was over"
        assert self.released == "no", f"{renewed} was released by its own process"
        assert (renewed.epoch, renewed.acquired_at) == (lease.epoch, lease.acquired_at)
        self.granted = renewed
        self.ends_first = self.ends_last = renewed.expires_at

    def renew_perhaps(self, lease: Lease, now: datetime, ttl_s: float) -> None:
        """A renewal failed: it may have landed."""
        if self.granted is not None and self.granted.epoch == lease.epoch:
            self.ends_last = max(self.ends_last, now + timedelta(seconds=ttl_s))

    def release(self, lease: Lease, *, surely: bool, now: datetime) -> None:
        """A release ended, done or failed."""
        if self.granted is None or self.granted.epoch != lease.epoch or not self._is_maybe_held(now):
            return
        is_sure = surely and self._is_surely_held(now)
        self.released = "yes" if is_sure else "perhaps"
        self.left = "in order" if is_sure else "unknown"

    def _begin(self, lease: Lease) -> None:
        self.granted, self.issued = lease, lease.epoch
        self.ends_first = self.ends_last = lease.expires_at
        self.released, self.left = "no", "not in order"

    def _is_surely_held(self, now: datetime) -> bool:
        return self.granted is not None and self.released == "no" and now < self.ends_first - _MARGIN

    def _is_maybe_held(self, now: datetime) -> bool:
        return self.granted is not None and self.released != "yes" and now < self.ends_last + _MARGIN
