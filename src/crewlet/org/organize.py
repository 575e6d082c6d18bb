"""From the document to the organisation: check it, resolve it, freeze it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from crewlet.base.errors import ConfigError
from crewlet.base.ids import Handle
from crewlet.org.document import CompanyDocument
from crewlet.org.document_budget import TokenBudgetDocument
from crewlet.org.document_providers import ModelEntryDocument
from crewlet.org.document_role import RoleDocument
from crewlet.org.document_tool_servers import ToolServerDocument
from crewlet.org.document_turn_engine import TurnEngineDocument
from crewlet.org.document_workers import DelegationDocument, WorkerDocument
from crewlet.org.model_entries import ModelEntry, ModelPick, Phase, vendor_keys
from crewlet.org.names import UnitKey, agent_id_for
from crewlet.org.organization import NotificationLimits, Organization, TurnLimits
from crewlet.org.references import Relations, relations_of
from crewlet.org.rules import company_problems
from crewlet.org.seats import Seat, SeatPlacement, Unit
from crewlet.org.token_budget import TokenBudget
from crewlet.org.tool_servers import ToolHints, ToolServer
from crewlet.org.walk import Chart, PlacedRole, PlacedUnit, chart_of
from crewlet.org.workers import DelegationLimits, WorkerTemplate

__all__ = ["organize"]

_NestedTexts = Mapping[str, Mapping[str, str]]


def organize(document: CompanyDocument) -> Organization:
    """The organisation that ``document`` describes. Raises ``ConfigError`` with every rule that it breaks."""
    problems = company_problems(document)
    if problems:
        raise ConfigError(*problems)
    chart = chart_of(document)
    relations = relations_of(chart)
    engine = document.turn_engine
    return Organization(
        name=document.name,
        mission=document.mission,
        vision=document.vision,
        timezone=document.timezone,
        policies=document.policies,
        seats=tuple(_seat(document, role, relations) for role in chart.roles),
        units=tuple(_unit(chart, unit, relations) for unit in chart.units),
        models=MappingProxyType({key: _model(key, entry) for key, entry in document.providers.llm.items()}),
        tool_servers=tuple(_tool_server(server) for server in document.mcp_servers),
        turn_limits=TurnLimits(
            max_iterations=engine.max_iterations,
            max_tool_rounds=engine.max_tool_rounds,
            delegation_depth_limit=engine.delegation_depth_limit,
            onboarding_max_tool_rounds=engine.onboarding_max_tool_rounds,
            extension_enabled=engine.extension_enabled,
            execute_max_tool_rounds_ceiling=engine.execute_max_tool_rounds_ceiling,
            onboarding_max_tool_rounds_ceiling=engine.onboarding_max_tool_rounds_ceiling,
            extension_round_step=engine.extension_round_step,
        ),
        notifications=NotificationLimits(
            gather_s=float(document.notification_coalesce_window_seconds),
            gather_max=document.notification_coalesce_max_batch,
            a_second_max=document.notification_rate_limit,
        ),
        token_budget=_token_budget(document.token_budget),
        workers=MappingProxyType({name: _worker(name, each, engine) for name, each in document.workers.items()}),
        delegation=_delegation(engine.delegation),
        dangling=relations.dangling,
    )


def _seat(document: CompanyDocument, role: PlacedRole, relations: Relations) -> Seat:
    written = role.written
    return Seat(
        handle=role.handle,
        name=written.name,
        kind=written.kind,
        unit=None if role.unit is None else role.unit.key,
        agent_id=agent_id_for(document.name, role.handle) if role.is_agent else None,
        goal=written.goal,
        backstory=written.backstory,
        responsibilities=written.responsibilities,
        behavioral_guidelines=written.behavioral_guidelines,
        email=written.email,
        availability=written.availability,
        contact=MappingProxyType({kind: value for kind, value in written.contact if value}),
        manages=relations.manages[role.handle],
        models=_pick(written),
        placement=SeatPlacement(written.placement.node, tuple(sorted(written.placement.labels.items()))),
        token_budget=_token_budget(written.token_budget),
        workers=(written.workers or tuple(document.workers)) if role.is_agent else (),
        mcp_env=_mcp_env(role),
    )


def _worker(name: str, written: WorkerDocument, engine: TurnEngineDocument) -> WorkerTemplate:
    return WorkerTemplate(
        name=name,
        description=written.description,
        system_prompt=written.system_prompt,
        tools=written.tools,
        model=written.model,
        max_turns=written.max_turns or engine.delegation.max_turns,
        output=MappingProxyType(written.output),
    )


def _delegation(written: DelegationDocument) -> DelegationLimits:
    return DelegationLimits(
        max_parallel=written.max_parallel,
        max_tasks_per_call=written.max_tasks_per_call,
        max_turns=written.max_turns,
        max_turns_ceiling=written.max_turns_ceiling,
        budget_fraction=written.budget_fraction,
        min_tokens_per_task=written.min_tokens_per_task,
        task_timeout_s=written.task_timeout_seconds,
        call_timeout_s=written.call_timeout_seconds,
    )


def _token_budget(written: TokenBudgetDocument) -> TokenBudget:
    return TokenBudget(day=written.day, week=written.week, month=written.month)


def _pick(written: RoleDocument) -> ModelPick:
    """The flat fields over the mapping's."""
    chains = {
        Phase.REVIEW: written.llm_review or written.llm.review,
        Phase.JUDGE: written.llm_judge or written.llm.judge,
        Phase.SUBAGENT: written.llm_subagent or written.llm.subagent,
    }
    return ModelPick(written.llm.default, MappingProxyType({phase: chain for phase, chain in chains.items() if chain}))


def _mcp_env(role: PlacedRole) -> _NestedTexts:
    """The unit's variables with the seat's own over them, one by one; a human's connects nowhere."""
    if not role.is_agent:
        return MappingProxyType({})
    own = role.written.mcp_env
    above: _NestedTexts = {} if role.unit is None else role.unit.written.mcp_env
    return MappingProxyType(
        {
            server: MappingProxyType({**above.get(server, {}), **own.get(server, {})})
            for server in dict.fromkeys((*above, *own))
        }
    )


def _unit(chart: Chart, unit: PlacedUnit, relations: Relations) -> Unit:
    written = unit.written
    return Unit(
        key=unit.key,
        name=written.name,
        type=written.type,
        purpose=written.purpose,
        goals=written.goals,
        parent=unit.above[0].key if unit.above else None,
        lead=relations.leads.get(unit),
        channel=next((around.written.channel for around in unit.line_of_units if around.written.channel), ""),
        seats=tuple(Handle(role.handle) for role in chart.members[unit]),
        children=tuple(UnitKey(other.key) for other in chart.units if other.above and other.above[0] is unit),
    )


def _model(key: str, written: ModelEntryDocument) -> ModelEntry:
    return ModelEntry(
        key=key,
        type=written.type,
        model=written.model or written.type,
        api_keys=vendor_keys(written.type, written.api_keys),
        optional=written.optional,
        base_url=written.base_url,
        timeout_s=written.timeout_seconds,
        rate_limit_cooldown_s=written.cooldowns.rate_limit_seconds,
        auth_cooldown_s=written.cooldowns.auth_seconds,
        reasoning=written.reasoning,
        reasoning_effort=written.reasoning_effort,
        reasoning_budget_tokens=written.reasoning_budget_tokens,
        script=written.script,
    )


def _tool_server(written: ToolServerDocument) -> ToolServer:
    hints = {tool: ToolHints(**hint.model_dump()) for tool, hint in written.tool_annotations.items()}
    return ToolServer(
        name=written.name,
        transport=written.transport,
        shared=written.shared,
        command=written.command,
        args=written.args,
        env=MappingProxyType(dict(written.env)),
        url=written.url,
        headers=MappingProxyType(dict(written.headers)),
        tool_prefix=written.tool_prefix,
        tool_annotations=MappingProxyType(hints),
        startup_timeout_s=written.startup_timeout_seconds,
        request_timeout_s=written.request_timeout_seconds,
    )
