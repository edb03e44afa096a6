"""The only reader of the environment and of muster.toml; everything else gets values.

Both are those of one project: the folder with a store or a muster.toml, looked for upwards from the working folder, as
git looks for its own. So a store is never used with the budgets and agents of another.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.domain.errors import BadArgument
from muster.domain.money import Microdollars, from_usd
from muster.domain.network import Network
from muster.settings.file import VerifySection, load_configuration
from muster.settings.network import proxy_secrets, read_network
from muster.settings.sections import AgentSection, key_variable

__all__ = [
    "CONFIG_FILE",
    "DATABASE",
    "HOME",
    "SECRET_VARIABLES",
    "Settings",
    "find_project",
    "load_settings",
    "parse_budget",
    "secrets_in",
]

CONFIG_FILE = "muster.toml"
HOME = ".muster"
DATABASE = "muster.db"
GIT = ".git"  # a folder, or in worktrees and submodules a file

SECRET_VARIABLES = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")

# A variable that is passed on and is called so is a secret; HOME or MODE is none, and must stay readable.
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")  # in an address


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that was set, read once."""

    home: Path
    folder: Path  # where muster.toml stands; paths in it are relative to here
    agents: Mapping[str, AgentSection] = field(default_factory=dict)
    run_cap: Microdollars | None = None
    day_cap: Microdollars | None = None
    imports: tuple[str, ...] = ()
    verify: VerifySection = field(default_factory=VerifySection)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)  # holds secrets
    crash_at: tuple[str, int] | None = None

    @property
    def database(self) -> Path:
        """The file of the store."""
        return self.home / DATABASE

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never be written anywhere."""
        named = {key for section in self.agents.values() if (key := key_variable(section))}
        keys = {value for name in {*SECRET_VARIABLES, *named} if (value := self.variables.get(name, ""))}
        given = (pair for section in self.agents.values() for pair in self._given(section))
        found = keys.union(proxy_secrets(self.variables), *(secrets_in(name, value) for name, value in given))
        return tuple(sorted(found))

    @property
    def network(self) -> Network:
        """The proxies and certificates that the environment names."""
        return read_network(self.variables)

    def _given(self, section: AgentSection) -> Iterator[tuple[str, str]]:
        """Yield the variables that an agent is given."""
        yield from getattr(section, "env", {}).items()
        yield from ((name, self.variables.get(name, "")) for name in getattr(section, "pass_env", ()))

    def variable(self, name: str) -> str | None:
        """Return a variable of the environment, an empty one as None."""
        return self.variables.get(name) or None


def secrets_in(name: str, value: str) -> set[str]:
    """Return what of a variable must never be written: all of it by its name, or the password in an address."""
    if not value or _SECRET_NAME.search(name):
        return {value} - {""}
    password = _PASSWORD.search(value)
    return {value, password[1]} if password else set()


def load_settings(
    home: Path | None = None, *, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Read the environment, and the muster.toml of a folder; without one, of the project of the working folder."""
    environment = os.environ if environment is None else environment
    if folder is None:
        person = environment.get("HOME")
        folder = find_project(
            Path.cwd(),
            top=Path(person).resolve() if person else None,
            user=os.geteuid(),
            with_store=home is None and not environment.get("MUSTER_HOME"),
        )
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
        verify=configuration.verify,
        variables=dict(environment),
        crash_at=_crash_at(environment.get("MUSTER_CRASH_AT")),
    )


def find_project(start: Path, *, top: Path | None, user: int, with_store: bool = True) -> Path:
    """Return the nearest folder with a muster.toml, or with a store if that counts too; else the one to start from.

    `top` is the last folder that is looked at, usually the person's home; `user` is whose folders are trusted.
    """
    wanted = (Path(CONFIG_FILE), Path(HOME, DATABASE)) if with_store else (Path(CONFIG_FILE),)
    for folder in _upwards(start, top, user):
        if any(_is_file(folder / name, None if folder == start else user) for name in wanted):
            return folder
    return start


def _upwards(start: Path, top: Path | None, user: int) -> Iterator[Path]:
    """Return the folders to look at: up to the top of a git tree, or `top`, and never into those of others."""
    for folder in (start, *start.parents):
        if folder != start and not _is_own(folder, user):
            return
        yield folder
        if folder == top or os.path.lexists(folder / GIT):
            return


def _is_own(path: Path, user: int) -> bool:
    """Return whether a folder or file is the user's: a muster.toml names programs that are started."""
    try:
        return path.stat().st_uid == user
    except OSError:
        return False


def _is_file(path: Path, user: int | None) -> bool:
    """Return whether a file is there that is trusted; where everybody can write, one of somebody else is not."""
    found = os.path.isfile(path)  # noqa: PTH113 - False also where one may not look
    return found and (user is None or _is_own(path, user))


def _crash_at(text: str | None) -> tuple[str, int] | None:
    if not text:
        return None
    point, _, nth = text.partition(":")
    if not nth.isdigit():
        raise BadArgument(f"MUSTER_CRASH_AT={text!r} does not have the form POINT:N")
    return point, int(nth)


def parse_budget(amount: str | float | None) -> Microdollars | None:
    """Read a budget given on the command line or in Python; nothing at all is no budget."""
    if amount is None:
        return None
    cap = from_usd(amount)
    if cap <= 0:
        raise BadArgument(f"a budget must be more than 0, not {amount}", suggestions=("leave it out for no cap",))
    return cap
