"""Scripted agents, and the names that may have been meant by one that nobody has."""

from collections.abc import Iterable

from muster.agents.base import Agent
from muster.agents.prices import near_models, price_from_toml
from muster.agents.scripted import BEHAVIORS, scripted
from muster.domain.agent import Profile
from muster.domain.errors import did_you_mean
from muster.domain.flaw import nearest
from muster.domain.script import Script
from muster.settings.sections import ModelSection

__all__ = ["make_scripted", "scripted", "suggestions"]

PRICED = ("anthropic", "openai")  # whose models are known by name


def make_scripted(section: ModelSection, *, profile: Profile, script: Script | None) -> Agent:
    """Make a scripted agent that is declared in muster.toml."""
    price = None if section.price is None else price_from_toml(**section.price.dollars())
    return scripted(section.model or "echo", script=script, profile=profile, price=price)


def suggestions(name: str, declared: Iterable[str], providers: Iterable[str]) -> tuple[str, ...]:
    """Return what to write instead of a name that nobody has."""
    known = ", ".join(f"{provider}/MODEL" for provider in providers)
    return (
        *did_you_mean(_near(name, declared, providers)),
        f"use a model: {known}",
        f"or a scripted agent without a key: {', '.join(f'sim/{script}' for script in BEHAVIORS)}",
        f"or an agent declared in muster.toml ({', '.join(sorted(declared)) or 'none yet'})",
    )


def _near(name: str, declared: Iterable[str], providers: Iterable[str]) -> list[str]:
    """Return the agents that may have been meant: declared, scripted, or a model of a known provider."""
    provider, slash, model = name.partition("/")
    if slash and model and (like := nearest(provider, [*providers, "sim"])):
        return [f"{like}/{model}"]
    known = [*declared, *(f"sim/{part}" for part in BEHAVIORS)]
    if near := nearest(name, known):
        return [near]
    bare = () if slash else PRICED
    return [f"{each}/{found}" for each in bare for found in near_models(each, name)[:1]]
