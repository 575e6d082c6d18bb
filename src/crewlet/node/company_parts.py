"""From the company document to what its models and tool servers are built from: mapped, and resolved at this edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crewlet.base.fence import Resolve
from crewlet.config import PYTHON_VARIABLE
from crewlet.llm import Cooldowns, ProviderConfig
from crewlet.org import Organization, Seat, ToolServer, variable_names
from crewlet.seats import PlacedSeat, Placement
from crewlet.tools import HintOverrides, ToolServerSpec
from crewlet.turns import DelegationConfig, TurnConfig

__all__ = [
    "CompanySource",
    "placed_seats",
    "provider_configs",
    "seat_server_specs",
    "shared_server_specs",
    "turn_config",
]

_SECRET_MIN_CHARS: Final = 8
"""Shorter values are no secrets worth hiding: blanking them out would blank out ordinary words."""


@dataclass(frozen=True, slots=True)
class CompanySource:
    """A company, the folder its document's relative paths count from, and where its ``${VAR}`` come from.

    ``document`` is its text, as it was written.
    """

    organization: Organization
    folder: Path
    resolve: Resolve
    document: str = ""


def placed_seats(organization: Organization) -> list[PlacedSeat]:
    """The agent seats of the company, in its order."""
    return [
        PlacedSeat(seat.handle, Placement(seat.placement.node, seat.placement.labels))
        for seat in organization.agent_seats
    ]


def turn_config(organization: Organization) -> TurnConfig:
    """How far the company lets a turn go."""
    bounds, workers = organization.turn_limits, organization.delegation
    return TurnConfig(
        max_iterations=bounds.max_iterations,
        max_tool_rounds=bounds.max_tool_rounds,
        delegation_depth_limit=bounds.delegation_depth_limit,
        onboarding_max_tool_rounds=bounds.onboarding_max_tool_rounds,
        extension_enabled=bounds.extension_enabled,
        execute_max_tool_rounds_ceiling=bounds.execute_max_tool_rounds_ceiling,
        onboarding_max_tool_rounds_ceiling=bounds.onboarding_max_tool_rounds_ceiling,
        extension_round_step=bounds.extension_round_step,
        delegation=DelegationConfig(
            max_parallel=workers.max_parallel,
            max_tasks_per_call=workers.max_tasks_per_call,
            max_turns=workers.max_turns,
            max_turns_ceiling=workers.max_turns_ceiling,
            budget_fraction=workers.budget_fraction,
            min_tokens_per_task=workers.min_tokens_per_task,
            task_timeout_s=workers.task_timeout_s,
            call_timeout_s=workers.call_timeout_s,
        ),
    )


def provider_configs(source: CompanySource, skipped: frozenset[str]) -> list[ProviderConfig]:
    """The entries of ``providers.llm`` but the skipped; their keys keep their references until a call needs them."""
    return [
        ProviderConfig(
            key=entry.key,
            type=entry.type,
            model=entry.model,
            api_keys=entry.api_keys,
            base_url=source.resolve(entry.base_url),
            timeout_s=entry.timeout_s,
            cooldowns=Cooldowns(
                rate_limit_seconds=int(entry.rate_limit_cooldown_s), auth_seconds=int(entry.auth_cooldown_s)
            ),
            reasoning=entry.reasoning,
            reasoning_effort=entry.reasoning_effort,
            reasoning_budget_tokens=entry.reasoning_budget_tokens,
            script=(source.folder / source.resolve(entry.script)) if entry.script else None,
        )
        for entry in source.organization.models.values()
        if entry.key not in skipped
    ]


def shared_server_specs(source: CompanySource) -> list[ToolServerSpec]:
    """The servers that all seats of a node share. Raises ``ConfigError`` for a variable that is not set."""
    return [_spec(server, source) for server in source.organization.tool_servers if server.shared]


def seat_server_specs(source: CompanySource, seat: Seat) -> list[ToolServerSpec]:
    """The servers that this seat has a child of its own of: the unshared ones that its ``mcp_env`` names."""
    servers = [server for server in source.organization.tool_servers if not server.shared]
    return [
        _spec(server, source).for_seat(
            {name: source.resolve(text) for name, text in seat.mcp_env[server.name].items()},
            _secrets(seat.mcp_env[server.name].values(), source.resolve),
        )
        for server in servers
        if server.name in seat.mcp_env
    ]


def _spec(server: ToolServer, source: CompanySource) -> ToolServerSpec:
    resolve = source.resolve
    return ToolServerSpec(
        name=server.name,
        transport=server.transport,
        shared=server.shared,
        command=resolve(server.command),
        args=tuple(resolve(argument) for argument in server.args),
        env=_resolved(server.env, resolve),
        cwd=str(source.folder),
        url=resolve(server.url),
        headers=_resolved(server.headers, resolve),
        tool_prefix=server.tool_prefix,
        tool_annotations={
            tool: HintOverrides(
                read_only=hints.read_only,
                destructive=hints.destructive,
                idempotent=hints.idempotent,
                open_world=hints.open_world,
            )
            for tool, hints in server.tool_annotations.items()
        },
        startup_timeout_s=server.startup_timeout_s,
        request_timeout_s=server.request_timeout_s,
        secrets=_secrets([*server.env.values(), *server.headers.values(), server.url], resolve),
    )


def _resolved(texts: Mapping[str, str], resolve: Resolve) -> dict[str, str]:
    return {name: resolve(text) for name, text in texts.items()}


def _secrets(texts: Iterable[str], resolve: Resolve) -> frozenset[str]:
    names = {name for text in texts for name in variable_names(text)} - {PYTHON_VARIABLE}
    values = (resolve(f"${{{name}}}") for name in sorted(names))
    return frozenset(value for value in values if len(value) >= _SECRET_MIN_CHARS)
