"""What every contract's suite has in common: promises that no backend may override, and capabilities it may lack."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeVar

__all__ = ["Capability", "Contract", "needed", "needs", "promises"]

_F = TypeVar("_F", bound=Callable[..., Any])
_PROMISE: Final = "test_"
_NEEDS: Final = "__needs__"


class Capability(Enum):
    """What a backend may declare absent; everything else it must do."""

    TIMED_BACKOFF = "a failure comes back only after its backoff"
    ACK_CLOCK = "what nobody settled comes back when the ack clock has run out"
    LEASE_STORE = "leases lie in a store that other processes read, and that can be out of reach"


class Contract:
    """The base of a suite's classes, each method ``test_…`` a promise; a backend is bound by an empty subclass.

    A subclass that defines a promise again, in whatever way, is refused as it is made: a promise switched off in
    silence is worse than none. What a backend cannot do it declares as an absent :class:`Capability`.
    """

    def __init_subclass__(cls) -> None:
        """Raises ``TypeError`` where ``cls`` has two definitions of one promise."""
        super().__init_subclass__()
        for name in promises(cls):
            places = [place.__qualname__ for place in cls.__mro__ if name in vars(place)]
            if len(places) > 1:
                raise TypeError(f"{cls.__qualname__} overrides the promise {name}: it is defined in {places}")


def promises(contract: type[Contract]) -> tuple[str, ...]:
    """The names of a contract's promises."""
    return tuple(name for name in dir(contract) if name.startswith(_PROMISE))


def needs(capability: Capability) -> Callable[[_F], _F]:
    """The promise holds only where ``capability`` is there."""

    def mark(promise: _F) -> _F:
        setattr(promise, _NEEDS, capability)
        return promise

    return mark


def needed(promise: Callable[..., Any]) -> Capability | None:
    """The capability that a promise needs, if it needs one."""
    return getattr(promise, _NEEDS, None)
