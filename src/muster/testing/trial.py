"""What a trial of `kill_everywhere` is told, and what it says of itself: values that both processes know."""

from dataclasses import dataclass, field

from muster.domain.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulePlace:
    """Where a module is: its name, and its file where the name alone does not find it."""

    module: str
    file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is tried: a workload with a spec, and where the workload and its agents come from."""

    path: list[str]  # of modules
    workload: str
    defined: ModulePlace
    spec: Json
    agents: tuple[ModulePlace, str] | None = None  # the function that returns them
    project: str | None = None
    budget_usd: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One process that does the work in a store: until it is killed at a point, or to the end."""

    folder: str
    crash: tuple[str, int] | None  # a point, and how often it is passed until the process is killed there
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a trial: the signal that ended the process, or what the run came to."""

    signal: int = 0
    result: Json = None
    error: str = ""
    uncertain: int = 0  # attempts whose outcome is unknown
    keys: list[str] = field(default_factory=list)  # under which something is stored, in children too
    unused: list[str] = field(default_factory=list)  # those of them that a resumed run did not ask for
