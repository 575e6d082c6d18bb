"""A model server on loopback, and real entries that talk to it through the vendors' SDKs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import pytest

from crewlet.llm import Bench, Cooldowns, ModelRequest, ProviderConfig, ToolSpec, UserMessage, VendorModel
from crewlet.testing.model_servers import ModelServer

WIRES = ("anthropic", "openai", "openai-compatible")
MODELS = {"anthropic": "claude-sonnet-4-6", "openai": "gpt-5.4", "openai-compatible": "some-model"}
KEY = "sk-first-0123456789abcdef"
OTHER_KEY = "sk-other-0123456789abcdef"

ADD_NOTE = ToolSpec(
    "add_note",
    "Adds a note.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
HELLO = ModelRequest("Be brief.", (UserMessage("hello"),), (ADD_NOTE,))

MakeModel = Callable[..., VendorModel]


class HandClock:
    """A wall clock that moves when a test moves it."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def elapsed_s(self) -> float:
        return self._now.timestamp()

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as started:
        yield started


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def benches() -> list[Bench]:
    return []


@pytest.fixture
async def make_model(server: ModelServer, clock: HandClock, benches: list[Bench]) -> AsyncIterator[MakeModel]:
    """Builds entries of any wire against the server, and closes them."""
    made: list[VendorModel] = []

    async def note(bench: Bench) -> None:
        benches.append(bench)

    def make(wire: str, *keys: str, url: str = "", **fields: object) -> VendorModel:
        own = server.anthropic_url if wire == "anthropic" else server.openai_url
        config = ProviderConfig(
            key="smart",
            type=wire,  # pyright: ignore[reportArgumentType] - one of WIRES
            model=str(fields.pop("model", MODELS[wire])),
            api_keys=keys or (KEY,),
            base_url=url or own,
            timeout_s=float(str(fields.pop("timeout_s", 10))),
            cooldowns=Cooldowns(),
            **fields,  # pyright: ignore[reportArgumentType] - what the test names
        )
        model = VendorModel(config, secrets=keys or (KEY,), clock=clock, on_bench=note)
        made.append(model)
        return model

    yield make
    for model in made:
        await model.aclose()
