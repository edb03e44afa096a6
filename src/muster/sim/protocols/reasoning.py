"""Reasoning in requests to OpenAI, of both its protocols: what a model refuses, and how much it reasons."""

from collections.abc import Mapping

from muster.domain.canonical import Json
from muster.sim.protocols.ask import DEFAULT_TIER, TIERS, SimRefusal
from muster.sim.protocols.models import UNKNOWN_MODEL, SimModel, openai_model

SERVED = {"auto": None, "scale": DEFAULT_TIER} | {tier: tier for tier in TIERS}  # by the tier that is named
SAMPLING = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}  # with their defaults


def effort_of(body: Mapping[str, Json], effort: Json, param: str) -> str | None:
    """Return the effort at which a request is reasoned about; raises SimRefusal for what its model does not take."""
    model = openai_model(body["model"])
    if effort is not None and not model.efforts:
        raise _unsupported(param, f"'{param}' is not supported with this model")
    if effort is not None and effort not in model.efforts:
        names = ", ".join(map(repr, model.efforts))
        raise SimRefusal(
            400,
            f"Unsupported value: '{param}' does not support {effort!r} with this model. Supported values are: {names}.",
            code="unsupported_value",
            param=param,
        )
    used = (model.effort if model.thinks else None) if effort is None else str(effort)
    reasons = used not in (None, "none") and model is not UNKNOWN_MODEL
    if reasons and not model.sampling:
        _check_sampling(body)
    return used if reasons else None


def check_limit(limit: int | None, model: SimModel, param: str) -> None:
    """Refuse a limit that is above what a model can answer."""
    if limit is not None and model is not UNKNOWN_MODEL and limit > model.max_output:
        raise SimRefusal(
            400,
            f"{param} is too large: {limit}. This model supports at most {model.max_output} completion tokens.",
            code="invalid_value",
            param=param,
        )


def tier_of(body: dict[str, Json]) -> str | None:
    """Return the tier that a request names; None leaves it to the project."""
    tier = body.get("service_tier")
    if tier is not None and tier not in SERVED:
        raise SimRefusal(
            400,
            f"Invalid service_tier argument: {tier!r}. Supported values are: {', '.join(map(repr, SERVED))}.",
            code="invalid_value",
            param="service_tier",
        )
    return None if tier is None else SERVED[tier]


def _check_sampling(body: Mapping[str, Json]) -> None:
    for name, usual in SAMPLING.items():
        if body.get(name) not in (None, usual):
            raise SimRefusal(
                400,
                f"Unsupported value: '{name}' does not support {body[name]} with this model. "
                f"Only the default ({usual}) value is supported.",
                code="unsupported_value",
                param=name,
            )


def _unsupported(param: str, why: str) -> SimRefusal:
    return SimRefusal(400, f"Unsupported parameter: {why}.", code="unsupported_parameter", param=param)
