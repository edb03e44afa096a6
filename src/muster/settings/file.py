"""muster.toml: read strictly; what does not fit is told with its name and its line."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import field

from muster.domain.errors import BadArgument, BadConfiguration, BadFile
from muster.domain.money import from_usd
from muster.domain.toml_flaw import toml_flaw
from muster.settings.fitting import Misfit, fit
from muster.settings.sections import KINDS, AgentSection, Strict

_KEYS = ("api_key", "key", "token")


class BudgetSection(Strict, frozen=True, kw_only=True):
    """`[budget]`: hard caps in dollars."""

    run_usd: float | None = None
    day_usd: float | None = None


class WorkloadsSection(Strict, frozen=True, kw_only=True):
    """`[workloads]`: modules that define the user's own."""

    import_: tuple[str, ...] = field(default=(), name="import")


class VerifySection(Strict, frozen=True, kw_only=True):
    """`[verify]`: who verifies code, where markers lie, and where reports go."""

    agents: Path | None = None  # verify.yaml; relative to muster.toml, as all paths here but the next
    pending: Path = field(default_factory=lambda: Path(".muster/pending"))  # relative to the root of what is verified
    model: str | None = None  # of agents that name none
    reports: Path | None = None  # the folder of one report for each wave; left out: verify/reports where the state is
    log: Path | None = None  # the folder of one log a day; left out: verify/log where the state is


class Configuration(Strict, frozen=True, kw_only=True):
    """The whole of muster.toml."""

    agents: dict[str, AgentSection] = field(default_factory=dict)
    budget: BudgetSection = BudgetSection()
    workloads: WorkloadsSection = WorkloadsSection()
    verify: VerifySection = VerifySection()


class BadConfigurationFile(BadFile, BadConfiguration):
    """The configuration file does not parse or does not fit."""

    code = "configuration_file"
    exit_code = 3


def load_configuration(path: Path) -> Configuration:
    """Read muster.toml; a file that is not there sets nothing."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Configuration()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfigurationFile(str(path), f"cannot be read: {error}") from error
    try:
        return read_configuration(_parsed(path, text))
    except Misfit as misfit:
        line = _line_of(text, misfit.names)
        raise BadConfigurationFile(str(path), _told(misfit), line=line, column=1 if line else None) from misfit


def _parsed(path: Path, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, line, column = toml_flaw(str(error), text)
        raise BadConfigurationFile(str(path), what, line=line, column=column) from error


def read_configuration(found: Mapping[str, Any]) -> Configuration:
    """Read what a file holds, or raise Misfit with the first thing that does not fit."""
    for name in found:
        if name not in Configuration.__struct_fields__:
            raise Misfit((name,))
    agents = found.get("agents", {})
    if not isinstance(agents, Mapping):
        raise Misfit(("agents",), "must be a table: a section [agents.NAME] for each agent")
    return Configuration(
        agents={name: read_agent(name, each) for name, each in agents.items()},
        budget=_budget(found.get("budget", {})),
        workloads=fit(found.get("workloads", {}), WorkloadsSection, ("workloads",)),
        verify=fit(found.get("verify", {}), VerifySection, ("verify",)),
    )


def read_agent(name: str, found: Any) -> AgentSection:
    """Read the section of one agent, by its kind."""
    names = ("agents", name)
    if not isinstance(found, Mapping):
        raise Misfit(names, f"must be a table: [agents.{name}]")
    if "kind" not in found:
        raise Misfit(names, 'nothing says what kind of agent it is; write it like kind = "program"')
    kind = found["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise Misfit((*names, "kind"), f"must be one of {', '.join(map(repr, KINDS))}")
    return fit(found, KINDS[kind], names)


def _budget(found: Any) -> BudgetSection:
    budget = fit(found, BudgetSection, ("budget",))
    for name in BudgetSection.__struct_fields__:
        amount = getattr(budget, name)
        try:
            cap = None if amount is None else from_usd(amount)
        except BadArgument as error:
            raise Misfit(("budget", name), error.message) from error
        if cap is not None and cap <= 0:
            raise Misfit(("budget", name), "a budget must be more than 0")
    return budget


def _told(misfit: Misfit) -> str:
    message = misfit.message or "is not known here; is it misspelled, or for another version?"
    if misfit.names[-1] in _KEYS:
        message = 'keys do not belong in this file; name the variable that holds it: key_env = "MY_KEY"'
    return f"{'.'.join(misfit.names)}: {message}"


def _line_of(text: str, names: Sequence[str]) -> int | None:
    """Find the line of a setting: its own below its section's header, else the header's."""
    section: list[str] = []
    best: tuple[int, int] | None = None  # how many names fit, which line
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        setting = re.match(r"\s*([\w\"'.-]+)\s*=", line)
        if header:
            section = _parts(header[1])
            here = section
        elif setting:
            here = section + _parts(setting[1])
        else:
            continue
        fits = len(here) if here == list(names[: len(here)]) else 0
        if fits and (best is None or fits > best[0]):
            best = (fits, number)
    return best[1] if best else None


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
