from __future__ import annotations

import hmac

import pytest

from crewlet.api import ApiToken
from crewlet.api.addresses import AllowedHosts, is_loopback
from crewlet.api.admission import Admission, Head
from crewlet.api.refusals import Refusal
from crewlet.api.tokens import Tokens

_TOKENS = Tokens([ApiToken("first", "one"), ApiToken("second", "two")])


def _admission(**changes: bool) -> Admission:
    return Admission(AllowedHosts.of("127.0.0.1"), _TOKENS, **changes)


def _head(method: str = "GET", path: str = "/seats", query: bytes = b"", **headers: str) -> Head:
    said = {"host": "127.0.0.1:8000", **headers}
    return Head(method, path, query, [(name.encode(), value.encode()) for name, value in said.items()])


def _code(verdict: str | Refusal) -> str:
    return verdict.code if isinstance(verdict, Refusal) else f"let in as {verdict}"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]", "LOCALHOST"])
def test_a_loopback_address_is_known_as_one(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.4", "example.com", "", "localhost.example.com"])
def test_another_address_is_no_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:9", "[::1]:8000", "LocalHost.", "[::1]"])
def test_a_loopback_listener_is_addressed_by_loopback_names(host: str) -> None:
    assert AllowedHosts.of("127.0.0.1").allows_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "10.0.0.4",
        "127.0.0.1.evil.example",
        "",
        "a@localhost",
        "localhost/x",
        "[::1",
    ],
)
def test_a_loopback_listener_is_addressed_by_no_other_name(host: str) -> None:
    assert not AllowedHosts.of("127.0.0.1").allows_host(host)


@pytest.mark.parametrize("host", ["10.0.0.4:8000", "[fe80::1]:8000", "localhost", "crew.example"])
def test_an_open_listener_is_addressed_by_digits_and_by_its_names(host: str) -> None:
    assert AllowedHosts.of("0.0.0.0", ["crew.example"]).allows_host(host)


def test_an_open_listener_is_not_addressed_by_a_name_it_was_not_given() -> None:
    assert not AllowedHosts.of("0.0.0.0").allows_host("evil.example")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://127.0.0.1:8000", True),
        ("https://127.0.0.1:8000", True),
        ("http://127.0.0.1:3000", False),
        ("http://localhost:8000", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
        ("file://127.0.0.1:8000", False),
    ],
)
def test_a_page_may_ask_the_place_that_served_it_alone(origin: str, allowed: bool) -> None:
    assert AllowedHosts.of("127.0.0.1").allows_origin(origin, "127.0.0.1:8000") is allowed


@pytest.mark.parametrize(("shown", "who"), [("one", "first"), ("two", "second")])
def test_a_token_speaks_for_its_id(shown: str, who: str) -> None:
    assert _admission().decide(_head(authorization=f"Bearer {shown}")) == who


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
def test_nobody_comes_in_without_a_token(method: str) -> None:
    assert _code(_admission().decide(_head(method))) == "unauthorized"


@pytest.mark.parametrize(("method", "code"), [("GET", "let in as anonymous"), ("HEAD", "let in as anonymous")])
def test_anonymous_reads_pass_where_they_are_allowed(method: str, code: str) -> None:
    assert _code(_admission(allow_anonymous_read=True).decide(_head(method))) == code


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_anonymous_writes_never_pass(method: str) -> None:
    assert _code(_admission(allow_anonymous_read=True).decide(_head(method))) == "unauthorized"


@pytest.mark.parametrize("said", ["Bearer wrong", "Bearer", "Bearer ", "Basic one", "one", ""])
def test_a_wrong_token_is_refused_even_where_anonymous_reads_pass(said: str) -> None:
    assert _code(_admission(allow_anonymous_read=True).decide(_head(authorization=said))) == "unauthorized"


def test_two_authorizations_are_none() -> None:
    head = _head()
    twice = Head(head.method, head.path, b"", [*head.headers, *[(b"authorization", b"Bearer one")] * 2])

    assert _code(_admission().decide(twice)) == "unauthorized"


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_probes_are_let_in_whatever_they_show(path: str) -> None:
    assert _admission().decide(_head(path=path, authorization="Bearer wrong")) == "anonymous"


def test_the_socket_takes_its_token_from_the_query() -> None:
    assert _admission().decide(_head(path="/ws/stream", query=b"token=two")) == "second"


def test_a_wrong_token_in_the_sockets_query_is_refused() -> None:
    admission = _admission(allow_anonymous_read=True)

    assert _code(admission.decide(_head(path="/ws/stream", query=b"token="))) == "unauthorized"


def test_no_other_route_takes_a_token_from_the_query() -> None:
    assert _code(_admission().decide(_head(path="/seats", query=b"token=two"))) == "unauthorized"


def test_a_foreign_host_is_refused_before_any_token_is_looked_at() -> None:
    assert _code(_admission().decide(_head(host="evil.example", authorization="Bearer one"))) == "wrong_host"


def test_a_foreign_origin_is_refused_with_a_good_token_too() -> None:
    head = _head(authorization="Bearer one", origin="http://evil.example")

    assert _code(_admission().decide(head)) == "wrong_origin"


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "OPTIONS", "BREW"])
def test_verbs_that_no_route_has_are_refused(method: str) -> None:
    assert _code(_admission().decide(_head(method, authorization="Bearer one"))) == "method_not_allowed"


def test_with_tokens_disabled_everybody_is_anonymous() -> None:
    assert _admission(disabled=True).decide(_head("POST")) == "anonymous"


def test_every_token_is_compared_in_constant_time_wherever_the_match_is(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", watched)

    assert [_TOKENS.id_of(shown) for shown in (b"one", b"two", b"x")] == ["first", "second", None]
    assert compared == [(32, 32)] * 6
