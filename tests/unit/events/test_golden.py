"""The released shapes on the wire: what was written once is read for ever, and written the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from crewlet.events import Body, body_types, decode, encode
from tests.unit.events.samples import BODIES, full_event

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.json"))


def _golden(path: Path) -> bytes:
    return path.read_bytes().removesuffix(b"\n")


def _newest(event_type: str) -> Path:
    """``{type}.{number}.json``: a shape that grows gets a further file, and the earlier ones stay as they are."""
    return max(GOLDEN.glob(f"{event_type}.[0-9]*.json"), key=lambda path: int(path.suffixes[-2][1:]))


@pytest.mark.spec("E-155")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_released_shape_is_still_read_and_written_back_byte_for_byte(path: Path) -> None:
    released = _golden(path)

    event = decode(released)

    assert isinstance(event.data, body_types()[path.name.rsplit(".", 2)[0]])
    assert event.extra == {}
    assert encode(event) == released


@pytest.mark.spec("E-146")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.event_type)
def test_the_newest_shape_of_each_type_is_what_is_written_today(body: Body) -> None:
    released = _golden(_newest(body.event_type))

    event = full_event(body)

    assert encode(event) == released
    assert decode(released) == event


@pytest.mark.spec("E-146")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.event_type)
def test_body_and_envelope_share_one_flat_object(body: Body) -> None:
    flat = msgspec.json.decode(encode(full_event(body)), type=dict[str, object])

    assert set(body.__struct_fields__) <= set(flat)
    assert set(flat) - set(body.__struct_fields__) == {
        "id",
        "type",
        "timestamp",
        "source",
        "node",
        "trace_id",
        "span_id",
        "parent_span_id",
        "delegation_depth",
        "parent_turn_id",
        "delegation_chain",
        "payload",
    }


def test_every_registered_type_has_a_golden_sample() -> None:
    assert [body.event_type for body in BODIES] == sorted(body_types())


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.event_type)
def test_a_sample_sets_every_field_to_other_than_its_default(body: Body) -> None:
    """Defaults are not written: a field left at its default would be no part of the golden bytes."""
    written = msgspec.to_builtins(body)

    assert set(written) == set(body.__struct_fields__)
