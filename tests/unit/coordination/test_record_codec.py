"""What another build wrote into a record, or into a part of one, comes out of our rewrite as it went in."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest
from msgspec.structs import replace

from crewlet.base.errors import Unavailable
from crewlet.coordination.records.codec import SharedRecord, decode_record, encode_record


class Wheel(SharedRecord, frozen=True, kw_only=True):
    size: int


class Cart(SharedRecord, frozen=True, kw_only=True):
    name: str
    spare: Wheel | None = None
    wheels: tuple[Wheel, ...] = ()
    by_side: dict[str, Wheel] = {}
    parents: tuple[str, ...] = ()


WIRE = {
    "name": "a",
    "spare": {"size": 1, "colour": "red"},
    "wheels": [{"size": 2, "worn": [0.5]}, {"size": 3}],
    "by_side": {"left": {"size": 4, "unknown": "a word of another build"}},
    "parents": ["b"],
    "axles": 2,
}


def test_what_another_build_wrote_survives_a_rewrite_in_the_record_and_in_each_part_of_it() -> None:
    cart = decode_record(Cart, msgspec.json.encode(WIRE))

    rewritten = encode_record(replace(cart, name="b"))

    assert msgspec.json.decode(rewritten) == {**WIRE, "name": "b"}


def test_the_parts_of_a_record_are_records() -> None:
    cart = decode_record(Cart, msgspec.json.encode(WIRE))

    assert [wheel.size for wheel in cart.wheels] == [2, 3]
    assert (cart.spare, cart.by_side["left"].size) == (Wheel(size=1, unknown={"colour": "red"}), 4)


def test_what_is_absent_takes_its_default() -> None:
    assert decode_record(Cart, b'{"name":"a"}') == Cart(name="a")


DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"name":1}',
        b'{"name":"a","wheels":[{}]}',
        b'{"name":"a","wheels":7}',
        b'{"name":"a","spare":7}',
        b'{"name":"a","by_side":7}',
        DEEP,
    ],
)
def test_what_this_build_cannot_read_is_unknown(value: bytes) -> None:
    with pytest.raises(Unavailable):
        decode_record(Cart, value)


class Stop(SharedRecord, frozen=True, kw_only=True):
    at: datetime | None = None


class Trip(SharedRecord, frozen=True, kw_only=True):
    began_at: datetime
    stops: tuple[Stop, ...] = ()


@pytest.mark.parametrize(
    "value",
    [
        b'{"began_at":"2026-11-29T12:00:00"}',
        b'{"began_at":"2026-11-29T12:00:00Z","stops":[{"at":"2026-11-29T12:00:00"}]}',
    ],
)
def test_an_instant_without_its_offset_is_unknown_since_it_compares_with_none_of_ours(value: bytes) -> None:
    with pytest.raises(Unavailable, match="offset"):
        decode_record(Trip, value)
