"""The user's own application as agents, made from their sections: a service over HTTP, or a function of a module."""

import importlib
import sys
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from muster.agents.base import Agent
from muster.agents.faults import Account
from muster.agents.function import FunctionAgent
from muster.agents.http.client import Http
from muster.agents.prices import price_from_toml
from muster.agents.service.agent import ServiceAgent
from muster.agents.service.answer import places_of, template_of
from muster.agents.service_terms import ServiceTerms
from muster.app.agent_kinds.base import UnreadyAgent
from muster.domain.agent import Profile
from muster.domain.errors import BadConfiguration
from muster.domain.money import Microdollars
from muster.settings import CONFIG_FILE
from muster.settings.file import setting_place
from muster.settings.sections import HttpSection, PythonSection


def make_service(
    name: str, section: HttpSection, *, profile: Profile, http: Http, variables: Mapping[str, str]
) -> Agent:
    """Make the agent of a service; one whose key is not set cannot be asked until it is."""
    where = f"agents.{name}"
    places = places_of(
        where,
        answer=section.answer,
        input_tokens=section.input_tokens,
        output_tokens=section.output_tokens,
        tool_calls=section.tool_calls,
        cost_usd=section.cost_usd,
    )
    template = None if section.body is None else template_of(section.body, f"{where}: body")
    try:
        account = _account(name, section.key_env, variables)
    except BadConfiguration as error:
        return UnreadyAgent(profile, error)
    return ServiceAgent(
        profile=profile,
        account=account,
        url=section.url,
        headers=section.headers,
        template=template,
        places=places,
        terms=_terms(section),
        http=http,
    )


def make_function(name: str, section: PythonSection, *, profile: Profile, folder: Path) -> Agent:
    """Make the agent of a function; its module is looked for in the folder of muster.toml and where Python looks."""
    function = _import(("agents", name, "function"), section.function, folder)
    return FunctionAgent(profile=profile, function=function, terms=_terms(section))


def _terms(section: HttpSection | PythonSection) -> ServiceTerms:
    most = section.reserve()
    return ServiceTerms(
        most=None if most is None else Microdollars(most),
        price=None if section.price is None else price_from_toml(**section.price.dollars()),
    )


def _account(name: str, variable: str | None, variables: Mapping[str, str]) -> Account:
    place = f"agent {name!r}"
    if variable is None:
        return Account(place=place)
    key = variables.get(variable, "")
    if not key:
        raise BadConfiguration(f"{place} needs a key and {variable} is not set", suggestions=(f"export {variable}=…",))
    return Account(place=place, variable=variable, key=key)


def _import(names: tuple[str, ...], target: str, folder: Path) -> Any:
    def wrong(what: str, *suggestions: str) -> BadConfiguration:
        return BadConfiguration(f"{setting_place(folder / CONFIG_FILE, *names)}: {what}", suggestions=suggestions)

    module, _, path = target.partition(":")
    if not module or not path:
        raise wrong(f"{target!r} is not a function", 'write it like "module:name"')
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = importlib.import_module(module)
    except Exception as error:
        why = str(error) if isinstance(error, ModuleNotFoundError) else repr(error)
        raise wrong(
            f"{module} cannot be imported: {why}", f"modules are searched in {folder} and on sys.path"
        ) from error
    try:
        return reduce(getattr, path.split("."), found)
    except AttributeError as error:
        raise wrong(f"{path} was not found in {module}") from error
