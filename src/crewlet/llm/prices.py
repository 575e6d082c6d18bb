"""What a reply costs, by a price list that comes with the engine and asks nobody.

Imports the list, which takes a moment to load: load it late.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from genai_prices import calc_price
from pydantic_ai.usage import RequestUsage

from crewlet.llm.provider_config import ProviderConfig

__all__ = ["PriceList"]

_WARM_UP: Final = datetime(2026, 1, 1, tzinfo=UTC)


class PriceList:
    """The prices of one entry's vendor: by its type, or by its address where it has one of its own."""

    def __init__(self, config: ProviderConfig) -> None:
        self._address = config.base_url
        self._vendor = config.type
        # The list is put together at its first use, which takes some forty milliseconds: not on the loop.
        self.cost_usd(config.model, RequestUsage(input_tokens=1, output_tokens=1), _WARM_UP)

    def cost_usd(self, model: str, usage: RequestUsage, at: datetime) -> float | None:
        """What the reply of this model cost, or ``None``: a model, a vendor or an address that is not on the list.

        Nor is the cost known of a reply whose vendor did not say how long it was.
        """
        if not (usage.input_tokens or usage.output_tokens):
            return None
        try:
            if self._address:
                price = calc_price(usage, model, provider_api_url=self._address, genai_request_timestamp=at)
            else:
                price = calc_price(usage, model, provider_id=self._vendor, genai_request_timestamp=at)
        except (LookupError, ValueError):
            return None
        return float(price.total_price)
