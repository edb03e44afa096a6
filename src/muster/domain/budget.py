"""Budgets: which levels a run counts under, and whether an amount may be reserved now, later, or never."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from muster.domain.advice import ArgumentAdvice
from muster.domain.errors import BudgetExhausted, Overdraft
from muster.domain.ids import RunId
from muster.domain.money import NOTHING, Microdollars, show_usd

DECLARE = "set the maximum cost of a call of this agent: budget_usd in muster.toml"
CALL = "call"  # the level of a single call
PART = "part:"  # the levels of parts of runs begin so
_OF_RUNS = ("run", "lineage")  # kinds of levels that end with their runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One budget above a call: its run's, its lineage's, a parent run's, or the day's; no cap means no limit."""

    id: str
    cap: Microdollars | None = None
    in_ledger: bool = False  # the cap in the ledger counts, since others may change it; `cap` is what it was when read


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBudget:
    """The user that a run was started by, and what all runs of this user may cost in one day (UTC)."""

    name: str
    day_cap: Microdollars | None = None

    def level(self, day: str) -> Level:
        """Return the level that counts what the user spends on a day."""
        return Level(id=f"user:{self.name}@{day}", cap=self.day_cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The levels that a run counts under besides its own, by name; stored when it is created.

    Resumes and children inherit them, whoever starts those. A name is a kind and what it is for: "run:ID", "pool:crew".
    """

    lineage: str  # of the run that was started first and all that were resumed from it; its cap is the budget
    above: tuple[str, ...] = ()  # of the runs that it is a child of, and any other; their caps stand in the ledger
    day_cap: Microdollars | None = None  # what a day may cost, as the settings said when the first run was created
    user: UserBudget | None = None  # None: started by somebody at this machine


def levels_above(budgets: Budgets | None) -> tuple[str, ...]:
    """Return the levels that a run counts under and that end with other runs: those of the runs it is a child of."""
    return tuple(level for level in (budgets.above if budgets else ()) if level.partition(":")[0] in _OF_RUNS)


def run_level(run: RunId) -> str:
    """Return the level that counts what one run and its children spend."""
    return f"run:{run}"


def lineage_level(run: RunId) -> str:
    """Return the level that counts what a run and all runs resumed from it spend."""
    return f"lineage:{run}"


def server_level(name: str) -> str:
    """Return the level that counts what all runs started through a kind of server spend; its cap is in the ledger."""
    return f"server:{name}"


def part_level(lineage: str, name: str) -> str:
    """Return the level that counts what one part of a run spends, such as one member of a council."""
    return f"{PART}{lineage}/{quote(name)}"  # ids are kept in lists with spaces between them


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What some calls of a run may spend together, below all budgets of the run."""

    name: str
    cap: Microdollars


@dataclass(frozen=True, slots=True, kw_only=True)
class Funds:
    """What a run and the runs it continues have spent, and what its budgets leave; None: nothing limits it."""

    spent: Microdollars
    left: Microdollars | None


def funds_of(lineage: str, levels: Iterable[Level], balances: Mapping[str, "Balance"]) -> Funds:
    """Return what is spent at the level of a lineage, and the least that any budget leaves."""
    rooms = []
    for level in levels:
        balance = balances.get(level.id, Balance())
        cap = balance.cap if level.in_ledger else level.cap
        if cap is not None:
            rooms.append(max(cap - balance.settled - balance.reserved, 0))
    left = Microdollars(min(rooms)) if rooms else None
    return Funds(spent=balances.get(lineage, Balance()).settled, left=left)


def require_server_left(level: str, balance: "Balance | None") -> None:
    """Raise BudgetExhausted if nothing is left for another run under the budget of a server."""
    if balance is not None and balance.cap is not None and balance.settled >= balance.cap:
        raise BudgetExhausted(
            f"the budget {_named(level)} is spent: {show_usd(balance.settled)} of {show_usd(balance.cap)}",
            level=level,
            suggestions=(_RAISE_SERVER,),
        )


def require_left(run: RunId, cap: Microdollars | None, settled: Microdollars) -> None:
    """Raise BudgetExhausted if nothing is left for resuming a run."""
    if cap is not None and settled >= cap:
        raise BudgetExhausted(
            f"run {run} cannot be resumed: {show_usd(settled)} of its budget of {show_usd(cap)} is already spent "
            "by this run and the runs it continues",
            suggestions=(ArgumentAdvice("budget", words=f"set a new total with {{}}, above {show_usd(settled)}"),),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What a budget holds: reserved may come back, settled does not; and its cap in the ledger."""

    reserved: Microdollars = NOTHING
    settled: Microdollars = NOTHING
    cap: Microdollars | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The amount fits under every cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """It does not fit while others hold reservations at this level."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It can never fit at this level."""

    level: str
    cap: Microdollars
    settled: Microdollars
    most: Microdollars

    @property
    def message(self) -> str:
        """Return which limit refused the call, with the amounts."""
        if self.level == CALL:
            return f"the call can cost up to {show_usd(self.most)}, and call_usd is {show_usd(self.cap)}"
        return (
            f"budget {_named(self.level)} does not cover this call: {show_usd(self.settled)} of {show_usd(self.cap)} "
            f"is spent, and the call can cost up to {show_usd(self.most)}"
        )

    @property
    def error(self) -> BudgetExhausted:
        """Return what stops a run that cannot pay for its next call."""
        less = "or lower the maximum cost of a call: max_tokens of a model, budget_usd of any other agent"
        key = "call_usd" if self.level == CALL else "day_usd" if self.level.startswith(("day:", "user:")) else ""
        more = (f"raise {key} in muster.toml",) if key else ()
        more = (_RAISE_SERVER,) if self.level.startswith("server:") else more
        more = next(((way,) for kind, way in _RAISE_GATEWAY if self.level.startswith(kind)), more)
        kind, _, run = self.level.partition(":")
        more = (_RAISE_RUN.format(run),) if kind in ("run", "lineage") else more
        return BudgetExhausted(self.message, level=self.level, suggestions=(*more, less))


def held_by_others(level: str, seconds: float) -> BudgetExhausted:
    """Return what refuses a call that waited for money which other calls hold, and did not get it."""
    return BudgetExhausted(
        f"budget {_named(level)} is held by other calls, and none of it came back within {seconds:g} s",
        level=level,
        suggestions=("try again when they are answered", "or raise the budget"),
    )


def gateway_level(name: str) -> str:
    """Return the level that counts what all exchanges under a name spend, of all servers, for ever."""
    return f"gateway:{name}"


def gateway_day(day: str) -> str:
    """Return the level that counts what all exchanges of a day spend."""
    return f"gateway-day:{day}"


GATEWAY_OTHERS = "gateway-others:"  # the level of all names that are not declared

_RAISE_RUN = "raise the budget: muster runs resume {} --budget TOTAL continues with the stored replies"
_RAISE_GATEWAY = (
    ("gateway:", "the operator can raise it: runs of [gateway] in muster.toml"),
    ("gateway-day:", "the operator can raise it: day_usd of [gateway] in muster.toml"),
    ("gateway-others:", "the operator can raise it, other_usd of [gateway] in muster.toml, or declare the name there"),
)
_RAISE_SERVER = "the operator of the server can raise it: start it with a higher --budget"


def _named(level: str) -> str:
    kind, _, name = level.partition(":")
    if kind == "part":
        return f"of {unquote(name.partition('/')[2])}"
    if kind in ("run", "lineage"):
        return f"of run {name}"
    if kind == "user":
        user, _, day = name.partition("@")
        return f"of user {user} on {day} (day_usd)"
    if kind == "server":
        return f"of the {name} server (--budget)"
    if kind == "gateway":
        return f"of the gateway's run {name}"
    if kind == "gateway-day":
        return f"of the gateway for {name}"
    if kind == "gateway-others":
        return "of all runs of the gateway that are not declared"
    return f"of the day {name} (day_usd)" if kind == "day" else level


Decision = Granted | Wait | Refused

GRANTED = Granted()


def decide(levels: Iterable[Level], balances: Mapping[str, Balance], most: Microdollars) -> Decision:
    """Refuse only when it can never fit; wait while reservations may still come back."""
    waits: Wait | None = None
    for level in levels:
        balance = balances[level.id]
        cap = balance.cap if level.in_ledger else level.cap
        if cap is None:
            continue
        if balance.settled + most > cap:
            return Refused(level=level.id, cap=cap, settled=balance.settled, most=most)
        if waits is None and balance.settled + balance.reserved + most > cap:
            waits = Wait(level=level.id)
    return waits or GRANTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """A call that cost more than was reserved for it."""

    key: str
    cost: Microdollars
    reserved: Microdollars

    @property
    def refusal(self) -> BudgetExhausted:
        """What new calls of the run are refused with."""
        return BudgetExhausted(
            f"call {self.key!r} cost {show_usd(self.cost)}, more than the {show_usd(self.reserved)} "
            "that was reserved for it; no further calls are made, since the budget cannot be guaranteed",
            suggestions=(DECLARE,),
        )


def overdraft(excess: Excess | None, levels: Iterable[Level], balances: Mapping[str, Balance]) -> Overdraft | None:
    """Return how a run exceeded a budget: one of the levels, or what its call had declared as its maximum."""
    cause = "" if excess is None else f"call {excess.key!r} reported a cost of {show_usd(excess.cost)}"
    for level in levels:
        balance = balances.get(level.id, Balance())
        cap = balance.cap if level.in_ledger else level.cap
        if cap is not None and balance.settled > cap:
            numbers = f"budget {_named(level.id)} is exceeded: {show_usd(balance.settled)} of {show_usd(cap)} is spent"
            return _overdraft(f"{numbers}; {cause}" if cause else numbers)
    if excess is not None and excess.reserved:
        return _overdraft(f"{cause}, more than the {show_usd(excess.reserved)} that was reserved for it")
    return None


def _overdraft(message: str) -> Overdraft:
    return Overdraft(message, suggestions=(DECLARE,))
