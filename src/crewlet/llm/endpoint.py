"""One vendor endpoint, spoken to with whichever key it is handed. Classifies what fails, never retries.

Imports pydantic-ai: load it late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace

import httpx2
import structlog
from pydantic_ai import direct
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError
from crewlet.llm.contract import AssistantMessage, FailureKind, ModelFailure, ModelReply, ModelRequest, OnDelta
from crewlet.llm.failures import failure_of, refuses_streaming
from crewlet.llm.prices import PriceList
from crewlet.llm.provider_config import ProviderConfig
from crewlet.llm.transcript import binding_of, parameters_of, reply_of, to_vendor
from crewlet.llm.wires import (
    Wire,
    binds_reasoning,
    first_wire,
    http_client,
    model_for,
    settings_for,
    simpler_wire,
    strict_tools,
)

__all__ = ["Endpoint", "Manner"]

_log = structlog.get_logger(__name__)

_NOT_FOUND = frozenset({404, 405, 501})


@dataclass(slots=True)
class _Answer:
    """What the transport saw of one call's response."""

    status: int = 0
    content_type: str = ""

    @property
    def is_unstreamed(self) -> bool:
        return 0 < self.status < 300 and "event-stream" not in self.content_type  # noqa: PLR2004 - a success


_answer: ContextVar[_Answer | None] = ContextVar("llm_answer", default=None)


async def _note_answer(response: httpx2.Response) -> None:
    seen = _answer.get()
    if seen is not None:
        seen.status = response.status_code
        seen.content_type = response.headers.get("content-type", "")


@dataclass(frozen=True, slots=True)
class Manner:
    """How an endpoint turned out to like being spoken to; kept until the process ends."""

    wire: Wire
    streams: bool = True


class Endpoint:
    """The connections and the manner of one entry. ``secrets`` are all its keys, for keeping them out of messages.

    ``manner`` is what was found out of the same endpoint before, if anything was.
    """

    def __init__(
        self, config: ProviderConfig, *, secrets: Iterable[str], clock: Clock, manner: Manner | None = None
    ) -> None:
        self._config = config
        self._secrets = tuple(secrets)
        self._clock = clock
        self._prices = PriceList(config)
        self._manner = manner or Manner(first_wire(config))
        self._http = http_client(config)
        self._http.event_hooks["response"].append(_note_answer)
        self._models = {
            secret: model_for(config, self._manner.wire, secret=secret, http=self._http) for secret in secrets
        }

    @property
    def manner(self) -> Manner:
        """How it is spoken to now."""
        return self._manner

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def ask(self, request: ModelRequest, *, secret: str, on_delta: OnDelta | None) -> ModelReply:
        """One call with one key. Raises ``ModelFailure``, and nothing of a vendor's SDK.

        An endpoint that does not know its wire, or does not stream, is asked once more in a simpler manner, which then
        stands: that is no retry, the first request was never taken up as meant.
        """
        while True:
            manner, answer = self._manner, _Answer()
            streamed = on_delta if manner.streams else None
            token = _answer.set(answer)
            try:
                response = await self._call(manner, request, secret, streamed)
                if streamed is not None and answer.is_unstreamed and not response.parts:
                    self._negotiate(replace(manner, streams=False))
                    continue
                break
            except CrewletError:
                raise
            except Exception as error:  # noqa: BLE001 - what SDKs raise over a broken answer has no common root
                simpler = self._simpler(manner, answer, error, streamed=streamed is not None)
                if simpler is None:
                    raise self._failed(error) from None
                self._negotiate(simpler)
            finally:
                _answer.reset(token)
        reply = reply_of(
            response,
            provider_key=self._config.key,
            backend=self._backend(manner),
            model=self._config.model,
            bound_to=self._binding(manner, request, secret),
            cost_usd=self._cost_usd(response),
        )
        if on_delta is not None and streamed is None and reply.message.text:
            on_delta(reply.message.text)
        return reply

    async def _call(
        self, manner: Manner, request: ModelRequest, secret: str, on_delta: OnDelta | None
    ) -> ModelResponse:
        config, model = self._config, self._models[secret]
        messages = to_vendor(
            request.messages,
            backend=self._backend(manner),
            model=config.model,
            bound_to=self._binding(manner, request, secret),
        )
        goes_on = any(isinstance(message, AssistantMessage) for message in request.messages)
        settings = settings_for(config, manner.wire, model, goes_on=goes_on)
        parameters = parameters_of(request, strict=strict_tools(manner.wire))
        if on_delta is None:
            async with asyncio.timeout(config.timeout_s):
                response = await direct.model_request(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                )
        else:
            # The timeout bounds the wait for each next piece (on the transport); a whole stream may take longer.
            async with (
                asyncio.timeout(config.timeout_s * limits.LLM_STREAM_TIMES_TIMEOUT),
                direct.model_request_stream(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                ) as stream,
            ):
                async for event in stream:
                    _tell(event, on_delta)
                response = stream.get()
            self._check_whole(manner, response)
        if response.finish_reason == "error":
            raise ModelFailure(
                FailureKind.SERVER, f"{config.key}: the vendor gave up on its answer", provider_key=config.key
            )
        return response

    def _binding(self, manner: Manner, request: ModelRequest, secret: str) -> str:
        return binding_of(request) if binds_reasoning(manner.wire, self._models[secret]) else ""

    def _check_whole(self, manner: Manner, response: ModelResponse) -> None:
        """A stream that stops without saying why was cut off: the vendors always say, compatible servers need not."""
        said = (response.provider_details or {}).get("finish_reason")
        if manner.wire is not Wire.CHAT and response.parts and response.finish_reason is None and said is None:
            raise ModelFailure(
                FailureKind.NETWORK,
                f"{self._config.key}: network: the stream broke off before the reply was complete",
                provider_key=self._config.key,
            )

    def _simpler(self, manner: Manner, answer: _Answer, error: Exception, *, streamed: bool) -> Manner | None:
        if streamed and (answer.is_unstreamed or refuses_streaming(error)):
            return replace(manner, streams=False)
        wire = simpler_wire(self._config, manner.wire)
        return replace(manner, wire=wire) if wire is not None and _is_unknown_path(error) else None

    def _negotiate(self, simpler: Manner) -> None:
        """Become as simple as ``simpler``; calls that started in another manner never make it finer again."""
        config, before = self._config, self._manner
        wire = before.wire if simpler.wire is first_wire(config) else simpler.wire
        if wire is not before.wire:
            self._models = {secret: model_for(config, wire, secret=secret, http=self._http) for secret in self._models}
        self._manner = Manner(wire, streams=before.streams and simpler.streams)
        _log.info("llm_negotiated_down", provider=config.key, wire=wire, streams=self._manner.streams)

    def _cost_usd(self, response: ModelResponse) -> float | None:
        model = response.model_name or self._config.model
        return self._prices.cost_usd(model, response.usage, self._clock.now())

    def _failed(self, error: Exception) -> ModelFailure:
        return failure_of(
            error,
            provider_key=self._config.key,
            has_address=bool(self._config.base_url),
            now=self._clock.now(),
            secrets=self._secrets,
        )

    def _backend(self, manner: Manner) -> str:
        """Who said it: only the same endpoint, spoken to in the same way, can read its own blocks again."""
        return f"{manner.wire}@{self._config.base_url}" if self._config.base_url else manner.wire


def _is_unknown_path(error: Exception) -> bool:
    """Whether the endpoint has nothing at this path; a model that it does not have is another matter."""
    if not isinstance(error, ModelHTTPError):
        return False
    return error.status_code in _NOT_FOUND and error.provider_error_code != "model_not_found"


def _tell(event: object, on_delta: OnDelta) -> None:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
        on_delta(event.part.content)
    elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta) and event.delta.content_delta:
        on_delta(event.delta.content_delta)
