"""muster.toml: read strictly; what does not fit is told with its name and its line."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import BadArgument, BadConfiguration, BadFile
from muster.domain.flaw import nearest
from muster.domain.money import from_usd
from muster.settings.gateway import GatewaySection
from muster.settings.model_rules import model_flaws
from muster.settings.sections import (
    KINDS,
    AgentSection,
    BattlesSection,
    ModelSection,
    ObservabilitySection,
    PoolSection,
    SlotSection,
    Strict,
)
from muster.settings.service import HooksSection, LibrarySection, ServeSection, StoreSection, TokenSection
from muster.text import typed
from muster.text.typed import field
from muster.text.words import choice_error, conversion_words

T = TypeVar("T", bound=typed.Struct)

_TYPES: dict[str, type] = {"str": str, "object": dict, "array": list, "int": int, "float": float, "bool": bool}


class Misfit(Exception):
    """An invalid setting: where it stands, and what it must be."""

    def __init__(self, names: Sequence[str], message: str) -> None:
        super().__init__(": ".join(part for part in (".".join(names), message) if part))
        self.names, self.message = tuple(names), message


class UnknownKey(Misfit):
    """A key that its section does not have; `known` are the keys that it may have."""

    def __init__(self, names: Sequence[str], known: Collection[str]) -> None:
        near = nearest(names[-1], known)
        hint = f"; did you mean {near!r}?" if near else ""
        super().__init__(names, f"unknown key {names[-1]!r}{hint}")


def fit(found: Any, kind: type[T], names: Sequence[str]) -> T:
    """Make a section of what stands under these names, or raise Misfit."""
    _require_finite(found, names)
    try:
        return typed.convert(found, kind, dec_hook=_path)
    except typed.ValidationError as error:
        what, _, rest = str(error).partition(" - at `")
        place = _place(found, rest.removeprefix("$").rstrip("`"), what)
        raise _misfit(what, kind, (*names, *place)) from error


def _require_finite(found: Any, names: Sequence[str]) -> None:
    """Refuse inf and nan anywhere: TOML can write them, and no setting means anything with them."""
    if isinstance(found, float) and not math.isfinite(found):
        raise Misfit(names, f"must be a finite number, not {found}")
    for name, value in found.items() if isinstance(found, Mapping) else ():
        _require_finite(value, (*names, name))


def _keys_of(kind: Any) -> set[str]:
    """Return the keys of a section and of the sections in it."""
    if isinstance(kind, type) and issubclass(kind, typed.Struct):
        hints = get_type_hints(kind).values()
        return {*kind.__struct_encode_fields__, *(key for hint in hints for key in _keys_of(hint))}
    return {key for part in get_args(kind) for key in _keys_of(part)}


def _path(kind: type, value: Any) -> Path:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError("Expected `str`")


def _misfit(what: str, kind: type[typed.Struct], names: tuple[str, ...]) -> Misfit:
    if unknown := re.search(r"unknown field `(.*)`", what):
        return UnknownKey((*names, unknown[1]), _keys_of(kind))
    if missing := re.search(r"missing required field `(.*)`", what):
        return Misfit((*names, missing[1]), "is missing")
    if given := re.match(r"Invalid enum value (.*)", what):
        return Misfit(names, choice_error(_choices(kind, names[-1]), given[1].strip("'")))
    return Misfit(names, conversion_words(what, "a table"))


def _place(found: Any, path: str, what: str) -> tuple[str, ...]:
    """Return the names on the way; the reader does not say which one of a table it means, so it is looked for."""
    names: list[str] = []
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", path):
        if index.isdigit():
            break  # the list is named, not its members
        step = name or _wrong_field(found, what)
        names.append(step)
        found = found.get(step) if isinstance(found, Mapping) else None
    return tuple(names)


def _wrong_field(found: Any, what: str) -> str:
    expected = _TYPES.get(what.partition("`")[2].partition("`")[0], object)
    items = found.items() if isinstance(found, Mapping) else ()
    return next((str(name) for name, value in items if not isinstance(value, expected)), "…")


def _choices(kind: type[typed.Struct], name: str) -> list[str]:
    hint = get_type_hints(kind).get(name)
    literals = [hint, *get_args(hint)]
    return [str(choice) for each in literals if get_origin(each) is Literal for choice in get_args(each)]


_KEYS = ("api_key", "key", "token")
_SLOT_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TOKEN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_RESERVED_SLOT = re.compile(r"slot-[0-9]+|all")  # the ids of slots, and what stands for all of them


class BudgetSection(Strict, frozen=True, kw_only=True):
    """`[budget]`: hard caps in dollars."""

    run_usd: float | None = None
    day_usd: float | None = None
    call_usd: float | None = None


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
    pool: PoolSection = PoolSection()
    slots: tuple[SlotSection, ...] = ()
    tokens: tuple[TokenSection, ...] = ()
    serve: ServeSection = ServeSection()
    gateway: GatewaySection = GatewaySection()
    hooks: HooksSection = HooksSection()
    library: LibrarySection = LibrarySection()
    store: StoreSection = StoreSection()
    battles: BattlesSection = BattlesSection()
    observability: ObservabilitySection = ObservabilitySection()


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
    except OSError as error:
        raise BadConfigurationFile(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadConfigurationFile(str(path), "is not UTF-8") from error
    try:
        return read_configuration(_parsed(path, text))
    except Misfit as misfit:
        line = _line_of(text, misfit.names)
        raise BadConfigurationFile(str(path), _told(misfit), line=line, column=1 if line else None) from misfit


def _parsed(path: Path, text: str) -> JsonObject:
    import tomllib

    from muster.text.documents.toml_reader import toml_flaw  # most projects have no muster.toml

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, line, column = toml_flaw(str(error), text)
        raise BadConfigurationFile(str(path), what, line=line, column=column) from error


def read_configuration(found: Mapping[str, Json]) -> Configuration:
    """Read what a file holds, or raise Misfit with the first thing that does not fit."""
    for name in found:
        if name not in Configuration.__struct_fields__:
            raise UnknownKey((name,), Configuration.__struct_fields__)
    agents = found.get("agents", {})
    if not isinstance(agents, Mapping):
        raise Misfit(("agents",), "must be a table, with a section [agents.NAME] for each agent")
    return Configuration(
        agents={name: read_agent(name, each) for name, each in agents.items()},
        budget=_budget(found.get("budget", {})),
        workloads=fit(found.get("workloads", {}), WorkloadsSection, ("workloads",)),
        verify=fit(found.get("verify", {}), VerifySection, ("verify",)),
        pool=_pool(found.get("pool", {})),
        slots=_slots(found.get("slots", [])),
        tokens=_tokens(found.get("tokens", [])),
        serve=fit(found.get("serve", {}), ServeSection, ("serve",)),
        gateway=fit(found.get("gateway", {}), GatewaySection, ("gateway",)),
        hooks=fit(found.get("hooks", {}), HooksSection, ("hooks",)),
        library=fit(found.get("library", {}), LibrarySection, ("library",)),
        store=fit(found.get("store", {}), StoreSection, ("store",)),
        battles=fit(found.get("battles", {}), BattlesSection, ("battles",)),
        observability=fit(found.get("observability", {}), ObservabilitySection, ("observability",)),
    )


def _pool(found: Any) -> PoolSection:
    pool = fit(found, PoolSection, ("pool",))
    if not pool.min_slots <= pool.slots <= pool.max_slots:
        bounds = f"between min_slots {pool.min_slots} and max_slots {pool.max_slots}"
        raise Misfit(("pool", "slots"), f"must be {bounds}, not {pool.slots}")
    _require_commands(pool)
    return pool


def _require_commands(pool: PoolSection) -> None:
    try:
        commands = pool.setup_commands
    except ValueError as error:
        raise Misfit(("pool", "setup"), f"a command cannot be split into arguments: {error}") from None
    if any(not command or not command[0] for command in commands):
        raise Misfit(("pool", "setup"), 'a command must name a program, such as "npm ci" or ["npm", "ci"]')


def _slots(found: Any) -> tuple[SlotSection, ...]:
    if not isinstance(found, list):
        raise Misfit(("slots",), "must be sections [[slots]], one for each slot")
    slots = tuple(fit(each, SlotSection, ("slots",)) for each in found)
    names = [slot.name for slot in slots]
    for name in names:
        if _SLOT_NAME.fullmatch(name) is None or _RESERVED_SLOT.fullmatch(name):
            rule = "use a name in kebab-case, such as code-reviewer, but not slot-N or all"
            raise Misfit(("slots", "name"), f"{name!r} cannot be the name of a slot; {rule}")
        if names.count(name) > 1:
            raise Misfit(("slots", "name"), f"two slots are called {name!r}")
    return slots


def _tokens(found: Any) -> tuple[TokenSection, ...]:
    if not isinstance(found, list):
        raise Misfit(("tokens",), "must be sections [[tokens]], one for each user")
    tokens = tuple(fit(each, TokenSection, ("tokens",)) for each in found)
    names = [token.name for token in tokens]
    for name in names:
        if _TOKEN_NAME.fullmatch(name) is None:
            rule = "use up to 40 letters, digits, dots, hyphens and underscores"
            raise Misfit(("tokens", "name"), f"{name!r} cannot be the name of a token; {rule}")
        if names.count(name) > 1:
            raise Misfit(("tokens", "name"), f"two tokens are called {name!r}")
    return tokens


def read_agent(name: str, found: Any) -> AgentSection:
    """Read the section of one agent, by its kind."""
    names = ("agents", name)
    if not isinstance(found, Mapping):
        raise Misfit(names, f"must be a table: [agents.{name}]")
    if "kind" not in found:
        raise Misfit(names, 'missing key "kind", for example kind = "program"')
    kind = found["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise Misfit((*names, "kind"), choice_error(tuple(KINDS), kind))
    section = fit(found, KINDS[kind], names)
    if isinstance(section, ModelSection):
        for key, message in model_flaws(section):
            raise Misfit((*names, key), message)
    return section


def _budget(found: Any) -> BudgetSection:
    budget = fit(found, BudgetSection, ("budget",))
    for name in BudgetSection.__struct_fields__:
        amount = getattr(budget, name)
        try:
            cap = None if amount is None else from_usd(amount)
        except BadArgument as error:
            raise Misfit(("budget", name), error.flaws[0].message) from error
        if cap is not None and cap <= 0:
            raise Misfit(("budget", name), f"must be more than 0, not {amount}")
    return budget


def _told(misfit: Misfit) -> str:
    names, message = misfit.names, misfit.message
    if isinstance(misfit, UnknownKey):
        names = names[:-1]  # the message has the last one
    if misfit.names[-1] in _KEYS:
        message = 'no keys in this file; name the environment variable that holds the key: key_env = "MY_KEY"'
    return ": ".join(part for part in (".".join(names), message) if part)


def setting_place(path: Path, *names: str) -> str:
    """Return the names of a setting, with its file and line if it stands there, for an error that is found later."""
    try:
        line = _line_of(path.read_text(encoding="utf-8"), names)
    except (OSError, UnicodeDecodeError):
        line = None
    return ": ".join([*([f"{path}:{line}"] if line else []), ".".join(names)])


def _line_of(text: str, names: Sequence[str]) -> int | None:
    """Find the line of a setting: its own below its section's header, else the header's, else the first below it."""
    section: list[str] = []
    best: tuple[int, int] | None = None  # how many names fit, which line
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        setting = re.match(r"""\s*((?:[\w.-]|"[^"]*"|'[^']*')+)\s*=""", line)
        if header:
            section = _parts(header[1])
            here = section
        elif setting:
            here = section + _parts(setting[1])
        else:
            continue
        fits = len(here) if here == list(names[: len(here)]) else 0
        if not fits and here[: len(names)] == list(names):
            fits = 1  # the section has no header of its own, only tables inside of it have
        if fits and (best is None or fits > best[0]):
            best = (fits, number)
    return best[1] if best else None


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


DIALECT = "https://json-schema.org/draft/2020-12/schema"
PARTS = {
    "budget": BudgetSection,
    "workloads": WorkloadsSection,
    "verify": VerifySection,
    "pool": PoolSection,
    "slots": tuple[SlotSection, ...],
    "tokens": tuple[TokenSection, ...],
    "serve": ServeSection,
    "gateway": GatewaySection,
    "hooks": HooksSection,
    "library": LibrarySection,
    "store": StoreSection,
    "battles": BattlesSection,
    "observability": ObservabilitySection,
}


def toml_schema() -> JsonObject:
    """Return the schema of muster.toml."""
    agents = list(dict.fromkeys(KINDS.values()))
    shown, definitions = typed.schema_components(
        [*agents, *PARTS.values()], schema_hook=_hook, ref_template="#/$defs/{name}"
    )
    parts = dict(zip(PARTS, shown[len(agents) :], strict=True))
    kinds = {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": list(KINDS)}}}
    properties = {"agents": {"type": "object", "additionalProperties": kinds | {"oneOf": list(shown[: len(agents)])}}}
    return {
        "$schema": DIALECT,
        "title": "muster.toml",
        "type": "object",
        "properties": {name: (properties | parts)[name] for name in Configuration.__struct_fields__},
        "additionalProperties": False,
        "$defs": definitions,
    }


def _hook(kind: type) -> JsonObject:
    if kind is Path:
        return {"type": "string"}
    raise NotImplementedError(kind)  # as msgspec wants it from a hook that does not know a type
