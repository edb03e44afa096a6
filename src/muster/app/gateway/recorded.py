"""Answers that a run of the gateway has in its journal, for a program that is started again and asks the same.

Each is given once, in the order in which it was recorded; what was not recorded is asked.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muster.agents.upstream.assembly import assembled
from muster.agents.upstream.dialects import AnswerForm
from muster.agents.upstream.prompts import differences
from muster.domain.entry import Entry, EntryKind, EntryState
from muster.domain.errors import ReplayMiss
from muster.domain.exchange import WireAnswer, WireRequest
from muster.domain.ids import RunId
from muster.domain.money import NOTHING, Microdollars
from muster.engine.base.wire_bodies import read_body
from muster.engine.calls.flow import AnswerFlow
from muster.store.base import Store

Asked = tuple[str, str, str]  # method, path and question


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One answer in the journal."""

    key: str
    asked: Sequence[str]  # the pieces of the request
    answer: WireAnswer
    streams: bool
    cost: Microdollars


class RecordedAnswers:
    """The recorded answers of a run that nobody has asked for again yet."""

    def __init__(self, store: Store, entries: Sequence[Entry] = ()) -> None:
        self._store = store
        self._left: defaultdict[Asked, deque[RecordedAnswer]] = defaultdict(deque)
        self.misses: list[str] = []  # requests that were not recorded, of a tape
        self.given = 0
        self.saved: Microdollars = NOTHING
        self.count = 0  # of exchanges that the run has made so far, answered or not
        for entry in entries:
            self._add(entry)

    @property
    def left(self) -> Sequence[str]:
        """Return the keys of the answers that nobody asked for again, in order."""
        return sorted(one.key for queue in self._left.values() for one in queue)

    async def take(self, request: WireRequest, form: AnswerForm) -> AnswerFlow | None:
        """Return the next answer that was recorded for a question; None where it must be asked."""
        queue = self._left.get((request.method, request.path, request.question))
        if not queue or (request.facts.stream and not queue[0].streams):
            return None
        found = queue.popleft()
        body = await read_body(self._store, found.answer.pieces)
        headers = dict(found.answer.headers)
        if found.streams and not request.facts.stream:
            whole = assembled(body, form)
            if whole is None:
                queue.appendleft(found)
                return None
            body, headers = whole, {**headers, "content-type": "application/json"}
        self.given += 1
        self.saved = Microdollars(self.saved + found.cost)
        flow = AnswerFlow()
        flow.begin(found.answer.status, headers)
        flow.write(body)
        flow.end()
        flow.finish()
        return flow

    async def take_only(self, request: WireRequest, form: AnswerForm) -> AnswerFlow:
        """Return the next answer that was recorded for a question; raises ReplayMiss, which is noted, for any other."""
        found = await self.take(request, form)
        if found is not None:
            return found
        miss = f"{request.method} {request.path}: no answer is recorded for this request{await self._nearest(request)}"
        self.misses.append(miss)
        raise ReplayMiss(miss, suggestions=("record it again: muster record -o TAPE -- COMMAND",))

    async def _nearest(self, request: WireRequest) -> str:
        """Return how the first request that is still to come at the same place differs; empty without one."""
        same = [one for (_, path, _), queue in self._left.items() if path == request.path for one in queue]
        if not same:
            return f", and none is left at {request.path}"
        expected = min(same, key=lambda one: one.key)
        places = differences(await read_body(self._store, expected.asked), request.body)
        return f"; {expected.key} is the next there: {'; '.join(places) or 'it differs in its form only'}"

    def _add(self, entry: Entry) -> None:
        told: Any = (entry.request or {}).get("wire") if entry.kind is EntryKind.CALL else None
        if not isinstance(told, dict):
            return
        self.count += 1
        reply = entry.reply
        if entry.state is not EntryState.DONE or reply is None or reply.wire is None:
            return
        asked = (str(told.get("method")), str(told.get("path")), str(told.get("asks", "")))
        streams = reply.wire.headers.get("content-type", "").startswith("text/event-stream")
        pieces = [str(piece) for piece in told.get("pieces", ())]
        self._left[asked].append(RecordedAnswer(entry.key, pieces, reply.wire, streams, reply.cost))


async def recorded_in(store: Store, run: RunId) -> RecordedAnswers:
    """Return what the journal of a run has."""
    return RecordedAnswers(store, [entry async for entry in store.archive.entries(run)])
