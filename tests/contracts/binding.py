"""A suite's classes as test classes of one backend's module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crewlet.testing.contracts import Contract

__all__ = ["bound"]


def bound(suite: Iterable[type[Contract]], *, module: str) -> Mapping[str, type[Contract]]:
    """An empty subclass of each class of ``suite``, by the name that pytest looks for, to be among ``module``'s names.

    The suite is thereby the one list of what every backend keeps: none can leave out a class of it.
    """
    names = {f"Test{contract.__name__.removesuffix('Promises')}": contract for contract in suite}
    return {name: type(name, (contract,), {"__module__": module}) for name, contract in names.items()}
