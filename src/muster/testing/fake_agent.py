"""An agent for tests: answers by pattern, costs what it is told to, and remembers what it was asked."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from muster.agents.base import Agent
from muster.agents.function import FunctionAgent
from muster.agents.media import told_media_support
from muster.agents.service_terms import ServiceTerms
from muster.domain.agent import Profile
from muster.domain.call import Reply, Request, identify
from muster.domain.errors import BadArgument, InvalidRequest, MusterError
from muster.domain.media import MediaKind, MediaSupport
from muster.domain.money import from_usd

Answer = str | Mapping[str, object] | Reply | MusterError
AnswerFunction = Callable[[Request], Answer]
Unmapped = str | Reply | MusterError | Sequence[Answer] | AnswerFunction
Answers = Unmapped | Mapping[str, object]


class FakeAgent:
    """Answers as told: `FakeAgent({"(?i)parcel": "delivery"}, otherwise="other")`, or `FakeAgent("always this")`.

    A pattern is a regular expression that is searched in the last text of a request; the first that is found speaks. An
    answer is a text, a mapping like that of an agent that is a function, a Reply, an error that is raised, a list
    of these (one after the other, the last again and again), or a function of the request that returns one. With
    `media=["image", "document"]` it can be shown images and PDFs, which are in the request with their bytes.
    """

    def __init__(
        self,
        answers: Mapping[str, Answers] | Unmapped,
        *,
        otherwise: Answers | None = None,
        cost_usd: str | float = 0,
        media: Collection[str] = (),
    ) -> None:
        self.asked: list[Request] = []  # every attempt, in the order in which they came
        self.paid: Counter[str] = Counter()  # how often each request was answered, by its digest
        self._cost = from_usd(cost_usd)
        self._media = _media_support(media)
        self._rules: list[tuple[re.Pattern[str], Answers]] = []
        self._given: dict[int, int] = {}  # how many of the answers of a list were given, by the number of its rule
        if isinstance(answers, Mapping):
            self._rules = [(_pattern(pattern), answer) for pattern, answer in answers.items()]
        else:
            self._rules = [(_pattern(""), answers)]
        if otherwise is not None:
            self._rules.append((_pattern(""), otherwise))

    def named(self, name: str) -> Agent:
        """Return it as the agent of a name, which `muster.open(agents=…)` asks for."""
        profile = Profile(name=name, limiter=f"fake:{name}", media=self._media)
        return FunctionAgent(profile=profile, function=partial(self._answer, name), terms=ServiceTerms(most=self._cost))

    async def _answer(self, name: str, request: Request) -> str | Mapping[str, object] | Reply:
        self.asked.append(request)
        answer = self._found(request)
        self.paid[identify(name, request).digest] += 1
        return answer

    def _found(self, request: Request) -> str | Mapping[str, object] | Reply:
        text = request.messages[-1].text
        for number, (pattern, answers) in enumerate(self._rules):
            if pattern.search(text):
                return self._priced(self._next(number, answers, request))
        raise InvalidRequest(
            f"the fake agent has no answer to {text[:200]!r}", suggestions=("add a pattern for it, or otherwise=",)
        )

    def _next(self, number: int, answers: Answers, request: Request) -> Answer:
        if isinstance(answers, Sequence) and not isinstance(answers, str):
            place = min(self._given.get(number, 0), len(answers) - 1)
            self._given[number] = place + 1
            return answers[place]
        return answers(request) if callable(answers) else answers

    def _priced(self, answer: Answer) -> str | Mapping[str, object] | Reply:
        if isinstance(answer, MusterError):
            raise answer
        if isinstance(answer, Reply):
            return answer
        parts = {"text": answer} if isinstance(answer, str) else answer
        return {"cost_usd": self._cost / 1_000_000, **parts} if self._cost else parts


def _media_support(kinds: Collection[str]) -> MediaSupport | None:
    named = (kinds,) if isinstance(kinds, str) else kinds
    wrong = next((kind for kind in named if kind not in tuple(MediaKind)), None)
    if wrong is not None:
        raise BadArgument(f"must be {' or '.join(MediaKind)}, not {wrong!r}", argument="media")
    return told_media_support(named)


def _pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise BadArgument(f"{pattern!r} is not a regular expression: {error}", argument="answers") from None
