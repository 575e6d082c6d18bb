"""How the tools of a document stand, put together from what each node says of itself."""

from __future__ import annotations

from crewlet.node.coverage import WHOLE
from crewlet.node.fleet_tools import FailedServer, NodeTools, ToolFailure, tools_view


def test_a_document_is_in_place_where_every_node_runs_it_and_every_seat_has_its_own_tools_somewhere() -> None:
    said = {"a": NodeTools(number=7, seats=("dev",)), "b": NodeTools(number=7, seats=("ops",))}

    view = tools_view(7, ["dev", "ops"], said, WHOLE)

    assert (view.epoch, view.failures, view.pending) == (7, (), ())


def test_a_server_that_does_not_serve_is_named_with_its_node_and_its_seat() -> None:
    failed = (FailedServer(name="wiki", error="no such file"), FailedServer(name="desk", seat="dev", error="no key"))

    view = tools_view(7, [], {"a": NodeTools(number=7, failed=failed)}, WHOLE)

    assert view.failures == (
        ToolFailure(node="a", server="wiki", seat="", error="no such file"),
        ToolFailure(node="a", server="desk", seat="dev", error="no key"),
    )


def test_a_node_that_runs_another_document_says_nothing_of_this_one() -> None:
    behind = NodeTools(
        number=6, behind="no such variable", failed=(FailedServer(name="old"),), starting=("new",), seats=("dev",)
    )

    view = tools_view(7, ["dev"], {"a": NodeTools(number=7), "b": behind}, WHOLE)

    assert view.failures == ()
    assert view.pending == (
        "b still runs document 6: no such variable",
        "dev is not established with its own tools yet",
    )


def test_a_server_that_was_not_tried_yet_is_no_failure_and_not_in_place() -> None:
    view = tools_view(7, [], {"a": NodeTools(number=7, starting=("wiki", "desk"))}, WHOLE)

    assert (view.failures, view.pending) == ((), ("a still starts wiki, desk",))


def test_a_node_that_is_ahead_of_whoever_asks_speaks_for_the_document_too() -> None:
    view = tools_view(7, ["dev"], {"a": NodeTools(number=8, seats=("dev",))}, WHOLE)

    assert view.pending == ()
