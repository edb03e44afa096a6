"""The only reader of the environment and of muster.toml; everything else gets values.

Both are those of one project: the folder with a store or a muster.toml, looked for upwards from the working folder, as
git looks for its own. So a store is never used with the budgets and agents of another. Proxies and certificates are
read in the way of curl: the lower-case name of a variable goes first.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.domain.errors import BadArgument, BadConfiguration
from muster.domain.money import Microdollars, from_usd
from muster.domain.network import Network
from muster.domain.provider import PROVIDERS
from muster.settings.database import (
    VARIABLE,
    database_secrets,
    is_address,
    is_database_url,
    read_database_url,
    show_database,
)
from muster.settings.file import VerifySection, load_configuration
from muster.settings.gateway import GatewaySection
from muster.settings.proxies import proxy_secrets, read_network
from muster.settings.sections import (
    AgentSection,
    BattlesSection,
    ModelSection,
    ObservabilitySection,
    PoolSection,
    SlotSection,
    key_variable,
)
from muster.settings.service import HooksSection, LibrarySection, ServeSection, TokenSection

__all__ = [
    "CONFIG_FILE",
    "DATABASE",
    "HOME",
    "SECRET_VARIABLES",
    "Settings",
    "find_project",
    "is_address",
    "is_database_url",
    "load_settings",
    "parse_budget",
    "secrets_in",
    "show_database",
]

CONFIG_FILE = "muster.toml"
HOME = ".muster"
DATABASE = "muster.db"
REQUEST_TIMEOUT_MS = "600000"
REGION = "local"
GIT = ".git"  # a folder, or in worktrees and submodules a file

SECRET_VARIABLES = tuple(dict.fromkeys(one.key_variable for one in PROVIDERS.values() if one.key_variable))

# A variable that is passed on and is called so is a secret; HOME or MODE is none, and must stay readable.
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH", re.IGNORECASE)
_REGION = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")  # in an address


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that was set, read once."""

    home: Path
    folder: Path  # where muster.toml stands; paths in it are relative to here
    agents: Mapping[str, AgentSection] = field(default_factory=dict)
    run_cap: Microdollars | None = None
    day_cap: Microdollars | None = None
    call_cap: Microdollars | None = None
    imports: tuple[str, ...] = ()
    verify: VerifySection = field(default_factory=VerifySection)
    pool: PoolSection = field(default_factory=PoolSection)
    slots: tuple[SlotSection, ...] = ()
    tokens: tuple[TokenSection, ...] = ()
    serve: ServeSection = field(default_factory=ServeSection)
    gateway: GatewaySection = field(default_factory=GatewaySection)
    hooks: HooksSection = field(default_factory=HooksSection)
    library: LibrarySection = field(default_factory=LibrarySection)
    battles: BattlesSection = field(default_factory=BattlesSection)
    observability: ObservabilitySection = field(default_factory=ObservabilitySection)
    database_url: str | None = field(default=None, repr=False)  # of a server; None: the store is a file
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)  # holds secrets
    crash_at: tuple[str, int] | None = None

    @property
    def database(self) -> Path:
        """The file of the store, where it is one."""
        return self.home / DATABASE

    @property
    def store_place(self) -> str:
        """Where the store is, for people: a file, or the address of a database without its password."""
        return str(self.database) if self.database_url is None else show_database(self.database_url)

    @property
    def has_store(self) -> bool:
        """Return whether there is a store: a database that is named counts as one."""
        return self.database_url is not None or os.path.lexists(self.database)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never be written anywhere."""
        named = {key for section in self.agents.values() if (key := key_variable(section))}
        named |= {token.secret_env for token in self.tokens}
        keys = {value for name in {*SECRET_VARIABLES, *named} if (value := self.variables.get(name, ""))}
        given = (pair for section in self.agents.values() for pair in self._given(section))
        found = keys.union(
            proxy_secrets(self.variables),
            database_secrets(self.database_url, self.variables),
            secrets_in("REDIS_URL", self.redis_url or ""),
            *(secrets_in(name, value) for name, value in given),
        )
        return tuple(sorted(found))

    @property
    def workload_limits(self) -> Mapping[str, int]:
        """The limits of the operator that workloads hold, by the names that they know them by."""
        return {"battles.runs": self.battles.runs, "battles.concurrency": self.battles.concurrency}

    @property
    def redis_url(self) -> str | None:
        """The address of the Redis server through which several machines share work (REDIS_URL); None: one machine."""
        return self.variables.get("REDIS_URL", "").strip() or None

    @property
    def region(self) -> str:
        """The name under which workers of one place say that they are there (MUSTER_REGION)."""
        region = self.variables.get("MUSTER_REGION", "").strip() or REGION
        if not _REGION.fullmatch(region):
            raise BadConfiguration(
                f"MUSTER_REGION={region!r} is not the name of a region",
                suggestions=("use letters, digits, dots, dashes and underscores, such as eu-west-1", "or unset it"),
            )
        return region

    @property
    def network(self) -> Network:
        """The proxies and certificates that the environment names."""
        return read_network(self.variables)

    @property
    def request_timeout(self) -> float:
        """The seconds that a request to the service may take (REQUEST_TIMEOUT_MS)."""
        text = self.variables.get("REQUEST_TIMEOUT_MS") or REQUEST_TIMEOUT_MS
        if not text.isascii() or not text.isdigit() or int(text) == 0:
            raise BadConfiguration(
                f"REQUEST_TIMEOUT_MS={text!r} is not a number of milliseconds",
                suggestions=(f"set it to a whole number above 0, such as {REQUEST_TIMEOUT_MS}, or unset it",),
            )
        return int(text) / 1000

    @property
    def trace_exporter(self) -> str | None:
        """How traces are sent, "otlp" or "console"; None: not at all. Variables of OpenTelemetry go first."""
        return read_trace_exporter(self.variables, self.observability.otel)

    @property
    def trace_protocol(self) -> str:
        """The protocol of OTLP."""
        return read_trace_protocol(self.variables)

    @property
    def trace_content(self) -> bool:
        """Return whether prompts and answers stand in traces."""
        said = self.variables.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().lower()
        return said in _CONTENT_IN_SPANS if said else self.observability.otel_content

    def _given(self, section: AgentSection) -> Iterator[tuple[str, str]]:
        """Yield the variables that an agent is given."""
        yield from getattr(section, "env", {}).items()
        if isinstance(section, ModelSection):
            for name, value in section.sent.items():
                yield (value if value.startswith("$") else name), self.filled(value)
        passed = (*getattr(section, "pass_env", ()), *getattr(section, "key_pass_env", ()))
        yield from ((name, self.variables.get(name, "")) for name in passed)

    def filled(self, value: str) -> str:
        """Return a value of a section, which stands in a variable if it is written as `$NAME`."""
        return self.variables.get(value[1:], "") if value.startswith("$") else value

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
    home: Path | None = None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    database_url: str | None = None,
) -> Settings:
    """Read the environment, and the muster.toml of a folder; without one, of the project of the working folder.

    A `database_url` goes before the one of the environment.
    """
    environment = os.environ if environment is None else environment
    if database_url is not None:
        environment = {**environment, VARIABLE: database_url}
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
        call_cap=None if budget.call_usd is None else from_usd(budget.call_usd),
        imports=configuration.workloads.import_,
        verify=configuration.verify,
        pool=configuration.pool,
        slots=configuration.slots,
        tokens=configuration.tokens,
        serve=configuration.serve,
        gateway=configuration.gateway,
        hooks=configuration.hooks,
        library=configuration.library,
        battles=configuration.battles,
        observability=configuration.observability,
        database_url=read_database_url(environment, configuration.store.url),
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
    cap = from_usd(amount, "budget_usd")
    if cap <= 0:
        raise BadArgument(
            f"must be more than 0, not {amount}", argument="budget_usd", suggestions=("leave it out for no limit",)
        )
    return cap


_CONTENT_IN_SPANS = frozenset({"true", "span_only", "span_and_event"})
_TRACE_EXPORTERS = ("otlp", "console")
_TRACE_PROTOCOLS = ("http/protobuf", "grpc")


def read_trace_exporter(variables: Mapping[str, str], wanted: bool) -> str | None:
    """Return the exporter of traces; raises BadConfiguration for one that is not supported."""
    named = variables.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or named == "none":
        return None
    if named and named not in _TRACE_EXPORTERS:
        raise BadConfiguration(
            f"OTEL_TRACES_EXPORTER={named} is not supported",
            suggestions=("use otlp, console or none", "or unset OTEL_TRACES_EXPORTER"),
        )
    return named or ("otlp" if wanted else None)


def read_trace_protocol(variables: Mapping[str, str]) -> str:
    """Return the protocol of OTLP; raises BadConfiguration for one that is not supported."""
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    name = next((name for name in names if variables.get(name, "").strip()), "")
    protocol = variables.get(name, "").strip().lower() or _TRACE_PROTOCOLS[0]
    if protocol not in _TRACE_PROTOCOLS:
        raise BadConfiguration(
            f"{name}={protocol} is not supported", suggestions=(f"use {' or '.join(_TRACE_PROTOCOLS)}", f"unset {name}")
        )
    return protocol
