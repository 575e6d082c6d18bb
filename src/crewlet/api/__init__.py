"""The operator's HTTP API and live stream over one running node. Importing this does not load the web framework."""

from crewlet.api.config import ApiConfig, ApiLimits, ApiToken
from crewlet.api.server import ApiServer

__all__ = ["ApiConfig", "ApiLimits", "ApiServer", "ApiToken"]
