"""Battles that are requested over a network: between agents of the library, for as long as requests may take."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.app.muster import Muster
from muster.battles.scale_spec import ScaleSpec
from muster.battles.spec import BattleSpec
from muster.domain.canonical import Json


def requested_battle(
    muster: Muster,
    agent: str,
    counterpart: str | None,
    *,
    judge: str | None,
    confirm_judge: str | None = None,
    validators: Sequence[Mapping[str, Json]] = (),
    timeout_secs: float | None = None,
    **more: Any,
) -> BattleSpec:
    """Return the spec of a battle; `more` are other arguments of `Battles.spec`.

    Raises BadArgument for agents that the library does not offer.
    """
    programs = [str(one["agent"]) for one in validators if one.get("agent")]
    muster.library.require_agents([agent, counterpart, judge, confirm_judge, *programs])
    longest = muster.settings.request_timeout
    return muster.battles.spec(
        agent,
        counterpart,
        judge=judge,
        confirm_judge=confirm_judge,
        validators=validators,
        models=muster.library.agents,
        timeout_secs=min(timeout_secs or longest, longest),
        **more,
    )


def requested_scale(
    muster: Muster,
    battle: BattleSpec,
    agent: str,
    *,
    agent_ids: Sequence[str],
    reviser: str | None,
    revision: bool,
    **more: Any,
) -> ScaleSpec:
    """Return the spec of a scale test of such battles; `more` are other arguments of `Scales.spec`.

    Raises BadArgument for agents that the library does not offer.
    """
    muster.library.require_agents([reviser, *agent_ids])
    return muster.battles.scales.spec(battle, agents=[agent, *agent_ids], reviser=reviser if revision else "", **more)
