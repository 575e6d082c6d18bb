"""The checker of lease histories: it accepts what one register could have said, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from crewlet.testing.lease_history import LeaseCall
from crewlet.testing.lease_linearizability import NotLinearizable, check_leases

TTL_S = 10.0


def claim(owner: str, at: tuple[float, float], epoch: int) -> LeaseCall:
    return call("claim", owner, at, epoch=epoch)


def refused(owner: str, at: tuple[float, float], holder: str) -> LeaseCall:
    return replace(call("claim", owner, at, answer="no"), holder=holder)


def failed(owner: str, began_s: float) -> LeaseCall:
    return call("claim", owner, (began_s, math.inf), answer="unknown")


def renewal(owner: str, at: tuple[float, float], epoch: int, *, answer: str = "yes") -> LeaseCall:
    return call("renew", owner, at, epoch=epoch, answer=answer)


def release(owner: str, at: tuple[float, float], epoch: int, *, answer: str = "yes") -> LeaseCall:
    return call("release", owner, at, epoch=epoch, answer=answer)


def call(what: str, owner: str, at: tuple[float, float], *, epoch: int = 0, answer: str = "yes") -> LeaseCall:
    return LeaseCall(
        what=what,  # pyright: ignore[reportArgumentType]
        resource="seat:ada",
        owner=owner,
        answer=answer,  # pyright: ignore[reportArgumentType]
        began_s=at[0],
        ended_s=at[1],
        ttl_s=TTL_S,
        epoch=epoch,
    )


EXPLAINED = {
    "a hand-over": [claim("a", (0, 1), 1), release("a", (2, 3), 1), claim("b", (4, 5), 2)],
    "a refusal beside the claim that it names": [claim("a", (0, 3), 1), refused("b", (1, 2), "a")],
    "a lapse": [claim("a", (0, 1), 1), claim("b", (9, 10.5), 2)],
    "a lapse after a renewal": [claim("a", (0, 1), 1), renewal("a", (5, 6), 1), claim("b", (14, 15.5), 2)],
    "a renewal that comes too late": [claim("a", (0, 1), 1), renewal("a", (9, 11), 1, answer="no")],
    "a gap": [claim("a", (0, 1), 1), release("a", (2, 3), 1), claim("b", (4, 5), 7)],
    "a failed claim in the way": [failed("a", 0), refused("b", (1, 2), "a"), claim("b", (3, 4), 2)],
    "a failed claim that arrived late": [
        failed("a", 0),
        claim("b", (1, 2), 1),
        release("b", (3, 4), 1),
        refused("b", (5, 6), "a"),
    ],
    "a release that nobody heard of": [
        claim("a", (0, 1), 1),
        release("a", (2, math.inf), 1, answer="unknown"),
        claim("b", (3, 4), 2),
    ],
    "a release that failed and is not renewed": [
        claim("a", (0, 1), 1),
        release("a", (2, math.inf), 1, answer="unknown"),
        renewal("a", (3, 4), 1, answer="no"),
        refused("b", (5, 6), "a"),
    ],
    "a late release of what another has": [
        claim("a", (0, 1), 1),
        claim("b", (10, 11), 2),
        release("a", (12, 13), 1),
        renewal("b", (14, 15), 2),
    ],
}
UNEXPLAINED = {
    "two holders": [claim("a", (0, 1), 1), claim("b", (2, 3), 2)],
    "an epoch twice": [claim("a", (0, 1), 1), release("a", (2, 3), 1), claim("b", (4, 5), 1)],
    "an epoch that goes back": [claim("a", (0, 1), 4), release("a", (2, 3), 4), claim("b", (4, 5), 2)],
    "a refusal by nobody": [refused("a", (0, 1), "b")],
    "a refusal by oneself": [claim("b", (0, 1), 1), refused("a", (2, 3), "a")],
    "a refusal after the release": [claim("a", (0, 1), 1), release("a", (2, 3), 1), refused("b", (4, 5), "a")],
    "a renewal of what another has": [
        claim("a", (0, 1), 1),
        claim("b", (10, 11), 2),
        renewal("a", (12, 13), 1),
    ],
    "a renewal after the release": [claim("a", (0, 1), 1), release("a", (2, 3), 1), renewal("a", (4, 5), 1)],
    "a live tenure not renewed": [claim("a", (0, 1), 1), renewal("a", (2, 3), 1, answer="no")],
    "a claim before the lapse": [claim("a", (0, 1), 1), renewal("a", (5, 6), 1), claim("b", (10, 14), 2)],
    "a late release that took the successor's": [
        claim("a", (0, 1), 1),
        claim("b", (10, 11), 2),
        release("a", (12, 13), 1),
        claim("a", (14, 15), 3),
    ],
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_what_one_register_could_have_said_is_accepted(name: str) -> None:
    check_leases(EXPLAINED[name])


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_what_no_register_could_have_said_is_found(name: str) -> None:
    with pytest.raises(NotLinearizable, match="seat:ada"):
        check_leases(UNEXPLAINED[name])


def test_each_resource_is_a_register_of_its_own() -> None:
    other = [replace(each, resource="seat:bob") for each in UNEXPLAINED["two holders"][1:]]

    check_leases([*UNEXPLAINED["two holders"][:1], *other])


def test_a_long_history_of_many_callers_is_checked_quickly() -> None:
    history: list[LeaseCall] = []
    for turn in range(60):
        at = 10.0 * turn
        history.append(claim("a", (at, at + 3), turn + 1))
        history.extend(refused(f"b{number}", (at + 1, at + 4), "a") for number in range(5))
        history.append(failed(f"c{turn % 4}", at + 2))
        history.append(release("a", (at + 5, at + 6), turn + 1))

    check_leases(history)
