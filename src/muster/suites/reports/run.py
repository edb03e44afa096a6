"""A suite run as it stands in the store: its cases, results and conversations. What every report is made from."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.entry import Entry
from muster.domain.errors import NotFound
from muster.domain.ids import RunId
from muster.domain.kind import require_kind
from muster.domain.run import TERMINAL, Run, RunState
from muster.store.base import Store
from muster.suites.journal import (
    ANSWERS,
    REPEATABLE,
    SNAPSHOT,
    Subject,
    SuiteSnapshot,
    cases_key,
    cases_of,
    environment_key,
    results_key,
    results_of,
)
from muster.suites.kind import SUITE
from muster.suites.recorded import RecordedAnswers, answers_in, recorded_turns
from muster.suites.spec import SuiteSpec, read_spec
from muster.suites.values.case import Case
from muster.suites.values.rules import rules_in
from muster.suites.values.verdict import CaseResult
from muster.text import typed


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """One run of suites; results come in the order of the cases, then of the subjects, then of the epochs."""

    store: Store
    run: Run
    spec: SuiteSpec
    snapshot: SuiteSnapshot
    environment: Mapping[str, Json]
    waits: bool = False  # for batches, so that what has no result yet may still get one
    continues: tuple[RunId, ...] = ()  # the runs that it goes on with, the last one first

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Who was tested."""
        return self.spec.subjects(self.snapshot)

    async def all_subjects(self) -> tuple[Subject, ...]:
        """Return who was tested, with the agents that only some cases name."""
        found = dict.fromkeys(self.subjects)
        async for case in self.cases():
            found |= dict.fromkeys(self.spec.tested_on(case, self.snapshot))
        return tuple(found)

    async def cases(self) -> AsyncIterator[Case]:
        """Yield the cases that were selected, page by page."""
        for page in range(self.snapshot.pages):
            for case in await self.page_of_cases(page):
                yield case

    async def results(self) -> AsyncIterator[CaseResult]:
        """Yield the results that are there, page by page; a run that stopped has fewer than it would have."""
        page = 0
        while results := await self.page_of_results(page):
            for result in results:
                yield result
            page += 1

    async def calls(self, keys: tuple[str, ...]) -> tuple[Entry, ...]:
        """Return the calls that stand under these keys, for conversations; one that is gone is left out."""
        found = [await self.store.journal.find(self.run.id, key) for key in keys]
        return tuple(entry for entry in found if entry is not None)

    async def page_of_cases(self, page: int) -> tuple[Case, ...]:
        """Return a page of cases; nothing after the last one.

        A resumed run copies its pages as it comes to them; until then they stand in the run that it continues.
        """
        for run in (self.run.id, *self.continues):
            if found := cases_of(await self._value(cases_key(page), run)):
                return found
        return ()

    async def page_of_results(self, page: int) -> tuple[CaseResult, ...]:
        """Return the last version of a page of results; only one with something mendable can have a newer one."""
        newest: tuple[CaseResult, ...] = ()
        version = 1
        while found := results_of(await self._value(results_key(self.spec.tag, page, version))):
            newest = found
            if not any(result.status in REPEATABLE for result in newest):
                break
            version += 1
        return newest

    async def _value(self, key: str, run: RunId | None = None) -> Json:
        await asyncio.sleep(0)  # whoever goes over a large run lets others go on between two pages
        entry = await self.store.journal.find(run or self.run.id, key)
        return None if entry is None else entry.value


async def open_suite_run(store: Store, run: Run) -> SuiteRun:
    """Read what a run was about; raises BadArgument for a run of something else."""
    require_kind(run, SUITE)
    spec = read_spec(run.spec)
    entry = await store.journal.find(run.id, SNAPSHOT)
    if entry is None:
        raise NotFound(
            f"run {run.id} stopped before its suites were read; there is nothing to report",
            suggestions=(f"muster runs resume {run.id}",),
        )
    environment = await store.journal.find(run.id, environment_key(spec.tag))
    return SuiteRun(
        store=store,
        run=run,
        spec=spec,
        snapshot=typed.convert(entry.value, SuiteSnapshot),
        environment={} if environment is None else environment.value,
        waits=await _waits(store, run),
        continues=await _continued(store, run),
    )


async def _continued(store: Store, run: Run) -> tuple[RunId, ...]:
    """Return the runs that a run goes on with; one whose answers it only reuses is none of them."""
    found: list[RunId] = []
    before = run
    while before.origin is not None:
        origin = await store.runs.get(before.origin.run)
        if origin is None or origin.lineage_level != run.lineage_level:
            break
        found.append(origin.id)
        before = origin
    return tuple(found)


async def _waits(store: Store, run: Run) -> bool:
    """Return whether a run waits for batches; one that was interrupted while it did still does."""
    if run.state in TERMINAL:
        return False
    return run.state is RunState.WAITING or (await store.batches.saving(run.id)).parked > 0


FAILURE = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One use of a tool."""

    name: str
    arguments: str  # as JSON text
    result: str | None = None  # where the agent used it by itself
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFile:
    """An image or a document that was shown."""

    digest: str
    type: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Something that was said; `role` is "failure" for a call that brought no answer."""

    role: str
    text: str
    uses: tuple[ToolUse, ...] = ()
    shown: tuple[ShownFile, ...] = ()


def turns(entries: Sequence[Entry]) -> tuple[Turn, ...]:
    """Return the calls of one case as one conversation: every request repeats the messages before it."""
    said: list[Turn] = []
    for entry in entries:
        request = entry.request if isinstance(entry.request, Mapping) else {}
        asked = [_asked(message) for message in request.get("messages", ())]
        if not said and request.get("system"):
            said.append(Turn(role="system", text=str(request["system"])))
        opening = sum(turn.role == "system" for turn in said[:1])
        said += asked[max(0, len(said) - opening) :]
        said += _outcome(entry)
    return tuple(said)


def last_answer(entries: Sequence[Entry]) -> str:
    """Return the last thing that the agent said."""
    replies = (entry.reply.text for entry in reversed(entries) if entry.reply is not None)
    return next(replies, "")


def _outcome(entry: Entry) -> Iterator[Turn]:
    if entry.reply is not None:
        yield _answered(entry.reply)
    elif entry.error is not None:
        yield Turn(role=FAILURE, text=str(entry.error.get("message", "the call failed")))


def _answered(reply: Reply) -> Turn:
    uses = tuple(
        ToolUse(name=call.name, arguments=_spelled(call.arguments), result=call.result, failed=call.failed)
        for call in reply.tool_calls
    )
    return Turn(role="assistant", text=reply.text, uses=uses)


def _asked(message: Mapping[str, Any]) -> Turn:
    uses = tuple(
        ToolUse(name=str(call.get("name", "")), arguments=_spelled(call.get("arguments")))
        for call in message.get("tool_calls", ())
    )
    return Turn(
        role=str(message.get("role", "")),
        text=str(message.get("text", "")),
        uses=uses,
        shown=tuple(_shown(message.get("content"))),
    )


def _shown(content: Json) -> Iterator[ShownFile]:
    """Yield what the content of a message in a request shows; that of an answer is a digest."""
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and "digest" in part:
            digest, kind = str(part["digest"]), str(part.get("kind", ""))
            label = str(part.get("name") or f"{kind} {digest[:12]}")
            yield ShownFile(digest=digest, type=str(part.get("type", "")), label=label)


def _spelled(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False, indent=2)


class Spoken:
    """Gives answers and conversations of one run."""

    def __init__(self, suite: SuiteRun) -> None:
        self._suite = suite
        self._recorded: RecordedAnswers | None = None  # read when it is first needed

    async def answer(self, result: CaseResult) -> str:
        """Return the last answer."""
        return await self.answer_in(result.case, result.epoch, result.keys)

    async def answer_in(self, case: str, epoch: int, keys: tuple[str, ...]) -> str:
        """Return the last answer of the calls of a case in an epoch; without calls, the one that was recorded."""
        if keys:
            return last_answer(await self._suite.calls(keys))
        return next(reversed(await self._record(case, epoch)), "")

    async def conversation(self, case: Case, result: CaseResult) -> tuple[Turn, ...]:
        """Return the whole conversation, and why it ended when it broke off."""
        said = turns(await self._suite.calls(result.keys)) or await self._retold(case, result.epoch)
        broke_off = result.error is not None and (not said or said[-1].role != FAILURE)
        if result.error is None or not broke_off:
            return said
        return (*said, Turn(role=FAILURE, text=str(result.error.get("message", "it failed"))))

    async def _retold(self, case: Case, epoch: int) -> tuple[Turn, ...]:
        said = [Turn(role=str(message.role), text=message.text) for message in case.messages]
        for answer, asked in zip_longest(await self._record(case.id, epoch), case.follow_ups):
            said += [Turn(role="assistant", text=answer)] if answer else []
            said += [Turn(role="user", text=asked)] if asked is not None else []
        return tuple(said)

    async def _record(self, case: str, epoch: int) -> tuple[str, ...]:
        """Return the recorded answers to a case in an epoch, turn by turn."""
        if self._suite.spec.answers is None:
            return ()
        if self._recorded is None:
            entry = await self._suite.store.journal.find(self._suite.run.id, ANSWERS)
            self._recorded = answers_in(None if entry is None else entry.value)
        return recorded_turns(self._recorded.get(case, {}), epoch, rules_in(self._suite.environment))
