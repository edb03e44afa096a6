"""The tokens of planned requests, counted by the providers: free, bounded, and never passed off as more than it is."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.agent_kinds.directory import AgentDirectory
from muster.domain.call import Request, Usage, request_json, with_files
from muster.domain.canonical import canonical
from muster.domain.errors import WireError
from muster.domain.money import NOTHING, Microdollars
from muster.domain.price import Price
from muster.suites.case_media import read_media
from muster.suites.cases import CaseReader, Units
from muster.suites.conversation import request_of
from muster.suites.spec import SuiteSpec

AT_ONCE = 8  # requests

OnCount = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactCount:
    """What a provider counted of the first requests of one agent."""

    requests: int = 0  # that were sent to count
    counted: int = 0  # calls whose tokens are known by that: the same request may be asked more than once
    tokens: int = 0  # that go in with these calls
    cost: Microdollars | None = NOTHING  # of these tokens; None: no price is known
    uncounted: int = 0  # calls that are left to the estimate
    why: str = ""  # they are


class ExactCounter:
    """Counts what is known before anything is asked: the first request of each case."""

    def __init__(self, directory: AgentDirectory, spec: SuiteSpec, *, most: int, on_count: OnCount) -> None:
        self._directory, self._spec = directory, spec
        self._left, self._on_count = most, on_count
        self._made = 0
        self._paths: Mapping[str, Path] = {}  # of images and documents, by digest

    async def count(self) -> Mapping[str, ExactCount]:
        """Return what was counted, by agent."""
        calls: dict[str, Counter[bytes]] = {}
        requests: dict[bytes, Request] = {}
        reading = CaseReader(self._spec)
        for agent, request in self._requests(reading):
            name = canonical(request_json(request))  # epochs ask the same again
            calls.setdefault(agent, Counter())[name] += 1
            requests[name] = request
        self._paths = reading.media_paths
        return {
            agent: await self._count(agent, [(requests[name], times) for name, times in of_agent.items()])
            for agent, of_agent in calls.items()
        }

    def _requests(self, reading: CaseReader) -> Iterator[tuple[str, Request]]:
        if self._spec.answers is not None:
            return  # they were recorded: nobody is asked
        units = Units(self._spec, reading.outline())
        for case in reading.cases():
            for unit in units.of(case) if not (case.skip or case.flaw) else ():
                agent = unit.subject.agent
                profile = self._directory.find(agent).profile
                request = request_of(unit, self._spec, case.messages)
                yield agent, replace(profile.complete(request), seed=None)  # which no token is spent on

    async def _count(self, agent: str, requests: Sequence[tuple[Request, int]]) -> ExactCount:
        """Count the requests to one agent, each of which is asked so many times."""
        all_calls, why = sum(times for _, times in requests), self._directory.uncounted(agent)
        if why:
            return ExactCount(uncounted=all_calls, why=why)
        asked = requests[: self._left]
        self._left -= len(asked)
        why = "" if len(asked) == len(requests) else "as many requests were made as are allowed"
        total, price = ExactCount(cost=NOTHING), self._directory.price(agent)
        for start in range(0, len(asked), AT_ONCE):
            part = asked[start : start + AT_ONCE]
            counts = await asyncio.gather(
                *(self._directory.count_tokens(agent, self._whole(request)) for request, _ in part),
                return_exceptions=True,
            )
            for (_, times), tokens in zip(part, counts, strict=True):
                if isinstance(tokens, BaseException):
                    why = _told(tokens)
                    total = replace(total, requests=total.requests + 1)
                else:
                    total = _with(total, times, tokens, price)
            self._made += len(part)
            self._on_count(self._made)
            if any(isinstance(tokens, BaseException) for tokens in counts):
                break  # what was refused once is refused again
        cost = None if price is None else total.cost
        return replace(total, uncounted=all_calls - total.counted, why=why, cost=cost)

    def _whole(self, request: Request) -> Request:
        """Return a request with the bytes of what it shows."""
        files = {each.digest: read_media(each, self._paths[each.digest]).data for each in request.media}
        return with_files(request, files) if files else request


def _with(total: ExactCount, times: int, tokens: int, price: Price | None) -> ExactCount:
    """Add calls of so many tokens each."""
    cost = NOTHING if price is None else price.cost(Usage(input=tokens))
    return replace(
        total,
        requests=total.requests + 1,
        counted=total.counted + times,
        tokens=total.tokens + times * tokens,
        cost=Microdollars((total.cost or NOTHING) + times * cost),
    )


def _told(error: BaseException) -> str:
    """Return why something was not counted; raises what no provider said."""
    if isinstance(error, WireError):
        return error.message
    raise error
