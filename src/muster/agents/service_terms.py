"""What calls to the user's own application cost: as it says itself, else by a price, else the most it can be. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.agents.payload import arguments_of, to_json
from muster.agents.usage import Ceiling, ceiling_of, cost_of, count_bytes
from muster.domain.agent import Quote
from muster.domain.call import Request, Stop, ToolCall, Usage
from muster.domain.canonical import Json
from muster.domain.errors import AgentFailed, OutcomeUnknown, Paid, ProviderFault, WireError
from muster.domain.money import NOTHING, Lane, Microdollars
from muster.domain.price import Price
from muster.domain.script import BYTES_PER_TOKEN

# An application that fails in this way may have asked a paid model before.
_MAY_HAVE_COST = (OutcomeUnknown, ProviderFault, AgentFailed)

_UNSAID = "it did not report its cost, so the maximum is booked"
_WRONG = "the cost that it reported is implausible, so the maximum is booked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What an application says that it used; None where it says nothing."""

    input: int | None = None
    output: int | None = None
    cost: Microdollars | None = None
    wrong: bool = False  # one of the figures is negative, not a number, or beyond 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """What goes into the books for a reply."""

    usage: Usage
    cost: Microdollars
    lane: Lane = Lane.BILLED
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTerms:
    """What the person said of the cost of a call: the most it can be, the price of tokens, or nothing."""

    most: Microdollars | None = None
    price: Price | None = None

    def quote(self, request: Request, size: int) -> Quote:
        """Bound what a request of so many bytes can cost."""
        ceiling = ceiling_of(request, size)
        return Quote(most=self._bound(ceiling), tokens=size // BYTES_PER_TOKEN + ceiling.output)

    def book(self, counted: Counted, ceiling: Ceiling, text: str, calls: Sequence[ToolCall]) -> Booked:
        """Return what a reply cost: rather too much than nothing, where the settings say that it costs something."""
        said = Usage(input=counted.input or 0, output=counted.output or 0)
        if counted.cost is not None and not counted.wrong:
            return Booked(usage=said, cost=counted.cost)
        if counted.wrong and (self.most or self.price is not None):
            return Booked(usage=said, cost=self._bound(ceiling), lane=Lane.UNCERTAIN, note=_WRONG)
        if self.price is not None:
            usage = _completed(counted, count_bytes(ceiling, text, calls))
            return Booked(usage=usage, cost=cost_of(usage, self.price))
        if self.most:
            return Booked(usage=said, cost=self.most, lane=Lane.UNCERTAIN, note=_UNSAID)
        return Booked(usage=said, cost=NOTHING)

    def charge_failure(self, error: WireError, counted: Counted, most: Microdollars) -> None:
        """Set the cost of a failed call in its error, as far as it is known and not set."""
        if error.paid is Paid.YES:
            return
        if (cost := self.known(counted)) is not None:
            error.paid, error.cost = Paid.YES, cost
        elif isinstance(error, _MAY_HAVE_COST):
            error.paid = Paid.UNKNOWN if most else Paid.NO

    def _bound(self, ceiling: Ceiling) -> Microdollars:
        if self.most is not None:
            return self.most
        return NOTHING if self.price is None else self.price.most(ceiling.input, ceiling.output)

    def known(self, counted: Counted) -> Microdollars | None:
        """Return what an application certainly cost, by the usage that it reports; None when that is not enough."""
        if counted.wrong:
            return None
        if counted.cost is not None or self.price is None or counted.input is None or counted.output is None:
            return counted.cost
        return self.price.cost(Usage(input=counted.input, output=counted.output))


def _completed(counted: Counted, guess: Usage) -> Usage:
    return Usage(
        input=guess.input if counted.input is None else counted.input,
        output=guess.output if counted.output is None else counted.output,
    )


def tool_calls_of(value: Json) -> tuple[ToolCall, ...] | None:
    """Read tool calls, flat or wrapped in "function" as OpenAI does; None when one of them names no tool."""
    if not isinstance(value, list):
        return None
    calls = [_tool_call(item, place) for place, item in enumerate(value)]
    return tuple(call for call in calls if call is not None) if None not in calls else None


def stop_of(request: Request, text: str, calls: Iterable[ToolCall]) -> Stop:
    """Return why it stopped: an application that uses its own tools is done, one with our tools waits for them."""
    waits = any(call.result is None for call in calls)
    return Stop.TOOL_USE if waits and (request.tools or not text) else Stop.END


def _tool_call(item: Json, place: int) -> ToolCall | None:
    if not isinstance(item, dict):
        return None
    used = item["function"] if isinstance(item.get("function"), dict) else item
    name, result, given = used.get("name"), item.get("result"), item.get("id")
    if not isinstance(name, str) or not name:
        return None
    return ToolCall(
        id=given if isinstance(given, str) and given else f"call_{place}",
        name=name,
        arguments=arguments_of(used.get("arguments")),
        result=result if result is None or isinstance(result, str) else to_json(result).decode(),
        failed=item.get("failed") is True,
    )
