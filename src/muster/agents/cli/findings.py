"""What was found in the output of a CLI agent so far."""

from dataclasses import dataclass, field

from muster.agents.amounts import count_of, microdollars_of
from muster.agents.bill import OWN_LIMITS
from muster.agents.cli.dialect import Places
from muster.agents.cli.showing import shown
from muster.agents.cli.tools import ToolLog
from muster.agents.tool_limits import MOST_NAME, MOST_SESSION
from muster.domain.call import Usage
from muster.domain.canonical import Json
from muster.domain.money import Microdollars
from muster.shapes.paths import JsonPath

_LONGEST_ERROR = 2_000


@dataclass(slots=True)
class Findings:
    """The parts of an answer; of each the last that was told counts, whatever line it stood in."""

    places: Places
    tools: ToolLog = field(init=False)
    answer: Json = None
    cost: Microdollars | None = None
    session: str = ""
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    permission: str | None = None  # the tool that it wants to use
    ended: bool = False  # the last line was there
    limited: bool = False  # it failed at a limit of its own, such as the number of turns

    def __post_init__(self) -> None:
        self.tools = ToolLog(self.places)

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.ended or self.error is not None or self.permission is not None

    @property
    def whole(self) -> bool:
        """Whether there is an answer, and the last line, if one was promised."""
        return self.answer is not None and (self.ended or self.places.ends is None)

    def take(self, said: Json) -> str:
        """Read one object, and give the text that it adds."""
        places = self.places
        self.answer = _joined(_all(places.answer, said), self.answer)
        self.session = shown(_last(places.session, said, self.session))[:MOST_SESSION]
        self._count(said)
        self.tools.take(said)
        self.ended = self.ended or bool(_all(places.ends, said))
        self.error = self._failure(_last(places.error, said, None))
        self.limited = self.error is not None and isinstance(said, dict) and said.get("subtype") in OWN_LIMITS
        asked = _last(places.permission, said, None)
        self.permission = self.permission if asked is None else shown(asked)[:MOST_NAME]
        return "".join(text for text in _all(places.delta, said) if isinstance(text, str))

    def _count(self, said: Json) -> None:
        told = [value for value in _all(self.places.cost_usd, said) if value is not None]
        self.cost = microdollars_of(*told) if told else self.cost  # not known, when the last one is not an amount
        turns = count_of(*_all(self.places.turns, said))
        self.turns = self.turns if turns is None else turns
        sent = count_of(*_all(self.places.input_tokens, said))
        written = count_of(*_all(self.places.output_tokens, said))
        if sent is not None or written is not None:
            self.usage = Usage(input=sent or 0, output=written or 0)

    def _failure(self, error: Json) -> str | None:
        """Give the words for a failure; an agent that says no more than that it failed has them in its answer."""
        if not error:
            return self.error
        told = self.answer if error is True and self.answer else error
        return shown(told)[:_LONGEST_ERROR]


def _all(path: JsonPath | None, said: Json) -> list[Json]:
    return [] if path is None else path.all(said)


def _joined(parts: list[Json], before: Json) -> Json:
    """Give the texts of one answer as one; of other values the last counts."""
    there = [part for part in parts if part is not None]
    if len(there) > 1 and all(isinstance(part, str) for part in there):
        return "".join(there)
    return there[-1] if there else before


def _last(path: JsonPath | None, said: Json, before: Json) -> Json:
    """Give the last value that a path finds and that is not null, else the one from before."""
    return next((value for value in reversed(_all(path, said)) if value is not None), before)
