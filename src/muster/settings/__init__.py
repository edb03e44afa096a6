"""The only reader of the environment and of muster.toml; everything else gets values."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, ValidationError, field_validator

from muster.domain.errors import BadArgument, BadConfiguration, BadFile
from muster.domain.money import Microdollars, from_usd
from muster.settings.sections import AgentSection, Strict, key_variable

CONFIG_FILE = "muster.toml"
HOME = ".muster"
SECRET_VARIABLES = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")

# A variable that is passed on and is called so is a secret; HOME or MODE is none, and must stay readable.
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")  # in an address


class BudgetSection(Strict):
    """`[budget]`: hard caps in dollars."""

    run_usd: float | None = None
    day_usd: float | None = None

    @field_validator("run_usd", "day_usd")
    @classmethod
    def _positive(cls, amount: float | None) -> float | None:
        if amount is None:
            return None
        try:
            cap = from_usd(amount)
        except BadArgument as error:
            raise ValueError(error.message) from error
        if cap <= 0:
            raise ValueError("a budget must be more than 0")
        return amount


class WorkloadsSection(Strict):
    """`[workloads]`: modules that define the user's own."""

    import_: tuple[str, ...] = Field(default=(), alias="import")


class Configuration(Strict):
    """The whole of muster.toml."""

    agents: dict[str, AgentSection] = Field(default_factory=dict)
    budget: BudgetSection = BudgetSection()
    workloads: WorkloadsSection = WorkloadsSection()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that was set, read once."""

    home: Path
    folder: Path  # where muster.toml stands; paths in it are relative to here
    agents: Mapping[str, AgentSection] = field(default_factory=dict)
    run_cap: Microdollars | None = None
    day_cap: Microdollars | None = None
    imports: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)  # holds secrets
    crash_at: tuple[str, int] | None = None

    @property
    def database(self) -> Path:
        """The file of the store."""
        return self.home / "muster.db"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never be written anywhere."""
        named = {key for section in self.agents.values() if (key := key_variable(section))}
        keys = {value for name in {*SECRET_VARIABLES, *named} if (value := self.variables.get(name, ""))}
        given = (pair for section in self.agents.values() for pair in self._given(section))
        return tuple(sorted(keys.union(*(secrets_in(name, value) for name, value in given))))

    def _given(self, section: AgentSection) -> Iterator[tuple[str, str]]:
        """Give the variables that an agent is given."""
        yield from getattr(section, "env", {}).items()
        yield from ((name, self.variables.get(name, "")) for name in getattr(section, "pass_env", ()))

    def variable(self, name: str) -> str | None:
        """Give a variable of the environment, an empty one as None."""
        return self.variables.get(name) or None


def secrets_in(name: str, value: str) -> set[str]:
    """Give what of a variable must never be written: all of it by its name, or the password in an address."""
    if not value or _SECRET_NAME.search(name):
        return {value} - {""}
    password = _PASSWORD.search(value)
    return {value, password[1]} if password else set()


def load_settings(
    home: Path | None = None, *, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Read muster.toml in the working folder, and the environment."""
    environment = os.environ if environment is None else environment
    folder = Path.cwd() if folder is None else folder
    configuration = load_configuration(folder / CONFIG_FILE)
    where = home or Path(environment.get("MUSTER_HOME") or folder / HOME)
    budget = configuration.budget
    return Settings(
        home=where,
        folder=folder,
        agents=configuration.agents,
        run_cap=None if budget.run_usd is None else from_usd(budget.run_usd),
        day_cap=None if budget.day_usd is None else from_usd(budget.day_usd),
        imports=configuration.workloads.import_,
        variables=dict(environment),
        crash_at=_crash_at(environment.get("MUSTER_CRASH_AT")),
    )


def load_configuration(path: Path) -> Configuration:
    """Read muster.toml; a file that is not there sets nothing."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Configuration()
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfigurationFile(str(path), f"cannot be read: {error}") from error
    try:
        return Configuration.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, str(error)) from error
    except ValidationError as error:
        raise _schema_error(path, text, error) from error


class BadConfigurationFile(BadFile, BadConfiguration):
    """The configuration file does not parse or does not fit."""

    code = "configuration_file"
    exit_code = 3


def _syntax_error(path: Path, message: str) -> BadConfigurationFile:
    place = re.search(r"\(at line (\d+), column (\d+)\)", message)
    what = message.split(" (at ")[0]
    if place is None:
        return BadConfigurationFile(str(path), what)
    return BadConfigurationFile(str(path), what, line=int(place[1]), column=int(place[2]))


def _schema_error(path: Path, text: str, error: ValidationError) -> BadConfigurationFile:
    problems = error.errors()
    # A name that is misspelled goes before the one that is missing because of that.
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    names = [str(name) for name in first["loc"]]
    if names[:1] == ["agents"] and len(names) > 3:
        del names[2]  # the kind, which stands between an agent and its setting here, but not in the file
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message = "is not known here; is it misspelled, or for another version?"
    if first["type"] == "union_tag_invalid":
        names, message = [*names, "kind"], f"must be one of {first['ctx']['expected_tags']}"
    if first["type"] == "union_tag_not_found":
        message = 'nothing says what kind of agent it is; write it like kind = "program"'
    if names and names[-1] in ("api_key", "key", "token"):
        message = 'keys do not belong in this file; name the variable that holds it: key_env = "MY_KEY"'
    line = _line_of(text, names)
    return BadConfigurationFile(str(path), f"{'.'.join(names)}: {message}", line=line, column=1 if line else None)


def _line_of(text: str, names: list[str]) -> int | None:
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
        fits = len(here) if here == names[: len(here)] else 0
        if fits and (best is None or fits > best[0]):
            best = (fits, number)
    return best[1] if best else None


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def _crash_at(text: str | None) -> tuple[str, int] | None:
    if not text:
        return None
    point, _, nth = text.partition(":")
    if not nth.isdigit():
        raise BadArgument(f"MUSTER_CRASH_AT={text!r} is not point:n")
    return point, int(nth)


def parse_budget(amount: str | float | None) -> Microdollars | None:
    """Read a budget given on the command line or in Python; nothing at all is no budget."""
    if amount is None:
        return None
    cap = from_usd(amount)
    if cap <= 0:
        raise BadArgument(f"a budget must be more than 0, not {amount}", suggestions=("leave it out for no cap",))
    return cap
