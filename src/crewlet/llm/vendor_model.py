"""One real entry of ``providers.llm``: its bag of keys in front of its endpoint. Light: the SDKs load on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from crewlet.base.clock import Clock
from crewlet.llm.bag import Bench, OnBench, bag_of
from crewlet.llm.contract import FailureKind, ModelFailure, ModelReply, ModelRequest, OnDelta, OnFallback
from crewlet.llm.provider_config import ProviderConfig

if TYPE_CHECKING:
    from crewlet.llm.endpoint import Endpoint, Manner

__all__ = ["VendorModel"]

_log = structlog.get_logger(__name__)


class VendorModel:
    """A model of a vendor. A key that the vendor turns away rests, and the entry's next key is tried at once."""

    def __init__(
        self, config: ProviderConfig, *, secrets: Sequence[str], clock: Clock, on_bench: OnBench | None = None
    ) -> None:
        self._config = config
        self._clock = clock
        self._on_bench = on_bench
        self._bag = bag_of(config.key, tuple(secrets), config.cooldowns)
        self._endpoint: Endpoint | None = None
        self._known: Manner | None = None
        self._opening = asyncio.Lock()

    @property
    def keys(self) -> tuple[str, ...]:
        """The one entry behind it."""
        return (self._config.key,)

    @property
    def is_real(self) -> bool:
        """Always true."""
        return True

    async def aclose(self) -> None:
        """Close the connections, where any were opened."""
        if self._endpoint is not None:
            await self._endpoint.aclose()

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        """One reply, with whichever key works. Raises ``ModelFailure``; a refused key costs one call, not the reply."""
        endpoint = await self._open()
        while True:
            credential = self._bag.pick(self._clock.now())
            if credential is None:
                raise self._nothing_left()
            self._bag = self._bag.lent(credential)
            try:
                reply = await endpoint.ask(request, secret=credential.secret, on_delta=on_delta)
            except ModelFailure as failure:
                bench = self._bag.bench_for(credential, failure.kind, self._clock.now(), failure.retry_after_s)
                if bench is None:
                    raise
                await self._rest(bench)
                # Each round benches one more key, so the bag bounds this loop.
                if self._bag.pick(self._clock.now()) is None:
                    raise
            else:
                self._bag = self._bag.served(credential)
                return reply
            finally:
                self._bag = self._bag.returned(credential)

    def rests_until(self, now: datetime) -> datetime | None:
        """When the first of its keys may be used again; ``None`` where one may be used now, or it has none."""
        bench = self._bag.soonest(now)
        return None if bench is None else bench.until

    def rest(self, bench: Bench) -> bool:
        """Take a bench that somebody else met with; whether it was news. It extends one's own, never shortens it."""
        before, self._bag = self._bag, self._bag.told(bench)
        return self._bag is not before

    def take_over(self, before: VendorModel) -> None:
        """Know what the model knows that held this entry until now: which keys rest, and how its endpoint is asked."""
        self._bag = self._bag.taking_over(before._bag)
        if _place_of(self._config) == _place_of(before._config):
            self._known = before._known if before._endpoint is None else before._endpoint.manner

    async def _rest(self, bench: Bench) -> None:
        self._bag = self._bag.benched(bench)
        _log.warning(
            "credential_benched", provider=bench.provider_key, key=bench.hint, until=bench.until, reason=bench.reason
        )
        if self._on_bench is not None:
            await self._on_bench(bench)

    def _nothing_left(self) -> ModelFailure:
        key, now = self._config.key, self._clock.now()
        bench = self._bag.soonest(now)
        if bench is None:
            return ModelFailure(FailureKind.NO_CREDENTIAL, f"{key}: has no key", provider_key=key)
        return ModelFailure(
            bench.reason,
            f"{key}: every key rests, the first until {bench.until:%Y-%m-%d %H:%M:%S} UTC ({bench.reason})",
            provider_key=key,
            retry_after_s=(bench.until - now).total_seconds(),
        )

    async def _open(self) -> Endpoint:
        async with self._opening:
            if self._endpoint is None:
                # Seconds of importing, and the reading of certificates: the loop goes on meanwhile.
                self._endpoint = await asyncio.to_thread(self._new_endpoint)
            return self._endpoint

    def _new_endpoint(self) -> Endpoint:
        from crewlet.llm.endpoint import Endpoint

        return Endpoint(self._config, secrets=self._bag.secrets, clock=self._clock, manner=self._known)


def _place_of(config: ProviderConfig) -> tuple[str, str, str]:
    """What an endpoint's manner hangs on."""
    return config.type, config.base_url, config.model
