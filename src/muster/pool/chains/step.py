"""One step of a chain that is run: its condition, its items, its tries, and the check that proves it.

A failed try is remembered under its key. Failures of the run that this one was resumed from are shown to the agent,
and do not count as tries of this one.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.domain.agent import Command
from muster.domain.call import Message, Quality, Reply, Request, Role
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput, ChildFailed, MusterError
from muster.engine.context import Context
from muster.judging.base import FAILED_CALL, cause_of, words_of
from muster.pool.chains.chain import (
    MAX_ITEMS,
    WORKLOAD,
    ChainSpec,
    ChainStep,
    StepRecord,
    StepStatus,
    record_key,
    step_key,
    try_key,
)
from muster.pool.chains.conditions import holds, parse_condition
from muster.pool.chains.extraction import extracted
from muster.pool.chains.scope import Scope
from muster.pool.chains.spec import stored
from muster.pool.chains.templates import parse_template
from muster.text import typed
from muster.text.words import one_line

ANY_EXIT = tuple(range(256))
MAX_ARGUMENT = 100_000  # bytes; the system refuses arguments of more than 128 KiB
MAX_ERROR = 2_000  # characters
MAX_SHOWN = 20_000  # characters of a failed output that are shown to the agent again
_FLAWS = {
    Quality.CUT: "the answer was cut: raise max_tokens of the step or the agent",
    Quality.REFUSED: "the agent refused to answer",
    Quality.EMPTY: "the answer is empty",
    Quality.UNFINISHED: "the answer may be incomplete: nobody said that it is whole",
}


class StepError(MusterError):
    """A try of a step failed; with what it had given and cost by then."""

    def __init__(self, message: str, *, output: str = "", cost: int = 0) -> None:
        super().__init__(message[:MAX_ERROR])
        self.output, self.cost = output, cost


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTry:
    """A try that failed, as it is remembered."""

    run: str
    error: str
    output: str = ""
    cost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOutcome:
    """What one item of a step came to."""

    output: str = ""
    values: Mapping[str, Json] | None = None  # None: it failed
    cost: int = 0
    failures: int = 0  # in this run
    error: str = ""


async def run_step(ctx: Context, spec: ChainSpec, step: ChainStep) -> StepRecord:
    """Return what became of a step; a failure is a value, what stops the run passes through."""
    # Events are written beside the work: of many rows in batches, no call is kept from joining the others by them.
    begins = ctx.emit(f"{step_key(step.name)}/started", "chain.step.started", {"name": step.name})
    telling = asyncio.get_running_loop().create_task(begins)
    try:
        record = await _record(ctx, spec, step)
    finally:
        await telling
    ends = ctx.emit(f"{step_key(step.name)}/ended", "chain.step.ended", _told(record))
    await ctx.gather(ends, _keep(ctx, record))
    return record


async def _record(ctx: Context, spec: ChainSpec, step: ChainStep) -> StepRecord:
    known = await ctx.recall(record_key(step.name), inherited=True)
    return await _StepRun(ctx, spec, step).record() if known is None else typed.convert(known, StepRecord)


async def _keep(ctx: Context, record: StepRecord) -> None:
    """Remember a step that is done; one that failed is tried again when the chain is resumed."""
    if record.status is not StepStatus.FAILED:
        await ctx.step(record_key(record.name), lambda: typed.to_builtins(record))


def _told(record: StepRecord) -> dict[str, Json]:
    told: dict[str, Json] = {
        "name": record.name,
        "status": str(record.status),
        "cost": record.cost,
        "retries_used": record.retries_used,
        "skipped": record.skipped or None,
        "items": record.items,
        "error": record.error or None,
    }
    return told | ({"output": record.output[:MAX_ERROR]} if record.status is StepStatus.FAILED else {})


class _StepRun:
    """A step that is being run."""

    def __init__(self, ctx: Context, spec: ChainSpec, step: ChainStep) -> None:
        self._ctx, self._spec, self._step = ctx, spec, step
        self._scope = Scope(known=spec.known, input=spec.input)

    async def record(self) -> StepRecord:
        """Return what became of it."""
        step = self._step
        try:
            if step.when and not holds(parse_condition(step.when), self._scope.value_of):
                why = f"when: {step.when}"
                return StepRecord(name=step.name, status=StepStatus.SKIPPED, skipped=why)
            if step.budget_usd is not None:
                return await self._in_child(step.budget_usd)
            if step.for_each:
                return await self._each(self._items())
        except (BadOutput, ChildFailed) as error:
            return StepRecord(name=step.name, status=StepStatus.FAILED, error=error.message[:MAX_ERROR])
        return self._summed([await _ItemRun(self._ctx, self._spec, step, self._scope, None).outcome()])

    async def _in_child(self, budget: float) -> StepRecord:
        """Run the step in a child run, whose budget is a hard cap."""
        part = stored(self._spec.part(self._step))
        result: Any = await self._ctx.child(f"{step_key(self._step.name)}/run", WORKLOAD, part, budget_usd=budget)
        return typed.convert(result["steps"][0], StepRecord)

    def _items(self) -> Sequence[Json]:
        name = parse_template(self._step.for_each).only or ""
        found = self._scope.value_of(name)
        if found is None:  # of a step that was skipped
            return ()
        if not isinstance(found, list):
            raise BadOutput(f"for_each: {{{name}}} is not a list: {one_line(str(found), 60)!r}")
        if len(found) > MAX_ITEMS:
            raise BadOutput(f"for_each: {{{name}}} has {len(found):,} items, more than {MAX_ITEMS:,}")
        return found

    async def _each(self, items: Sequence[Json]) -> StepRecord:
        async def one(index: int, item: Json) -> ItemOutcome:
            scope = self._scope.with_words(item=item, index=index)
            return await _ItemRun(self._ctx, self._spec, self._step, scope, index).outcome()

        return self._summed([outcome async for outcome in self._ctx.map(one, items)], many=True)

    def _summed(self, outcomes: Sequence[ItemOutcome], *, many: bool = False) -> StepRecord:
        failed = [(index, one) for index, one in enumerate(outcomes) if one.values is None]
        values: dict[str, Json] = {}
        for name in self._step.extract if not failed else ():
            found = [(one.values or {}).get(name) for one in outcomes]
            values[name] = found if many else found[0]
        error = ""
        if failed:
            index, first = failed[0]
            more = f"; and {len(failed) - 1} more of {len(outcomes)}" if len(failed) > 1 else ""
            error = f"item {index}: {first.error}{more}" if many else first.error
        return StepRecord(
            name=self._step.name,
            status=StepStatus.FAILED if failed else StepStatus.COMPLETED,
            output="\n\n".join(one.output for one in outcomes),
            values=values,
            cost=sum(one.cost for one in outcomes),
            retries_used=sum(one.failures - (one.values is None) for one in outcomes),
            items=len(outcomes) if many else None,
            error=error,
        )


class _ItemRun:
    """One item of a step, or all of it when it has none."""

    def __init__(self, ctx: Context, spec: ChainSpec, step: ChainStep, scope: Scope, item: int | None) -> None:
        self._ctx, self._spec, self._step, self._scope, self._item = ctx, spec, step, scope, item

    async def outcome(self) -> ItemOutcome:
        """Try until it is done, or until all tries of this run are used up."""
        number, own, spent, last = 0, 0, 0, None
        while own < self._step.most_tries:
            number += 1
            key = try_key(self._step.name, self._item, number)
            failed = await self._ctx.recall(f"{key}/failed", inherited=True)
            if failed is None:
                await self._back_off(key, own)
                try:
                    done = await self._try(key, last, recovers=own == 1 + self._step.retries)
                    return replace(done, cost=done.cost + spent, failures=own)
                except StepError as error:
                    failed = await self._remember(key, error)
            last = typed.convert(failed, FailedTry)
            own += last.run == self._ctx.run
            spent += last.cost
        return ItemOutcome(
            output=last.output if last else "", cost=spent, failures=own, error=last.error if last else ""
        )

    async def _back_off(self, key: str, own: int) -> None:
        """Wait before a further try, longer each time; how long is remembered, so a resumed run waits for the rest."""
        if own and self._step.backoff_secs:
            seconds = min(self._step.backoff_secs * 2.0 ** (own - 1), 3_600.0)
            await self._ctx.receive(f"{key}/backoff", f"backoff/{key}", timeout=seconds)

    async def _remember(self, key: str, error: StepError) -> Any:
        failed = FailedTry(run=self._ctx.run, error=error.message, output=error.output[:MAX_SHOWN], cost=error.cost)
        value = await self._ctx.step(f"{key}/failed", lambda: typed.to_builtins(failed))
        told = {"name": self._step.name, "item": self._item, "error": error.message, "cost": error.cost}
        await self._ctx.emit(f"{key}/told", "chain.step.failed", told)
        return value

    async def _try(self, key: str, last: FailedTry | None, *, recovers: bool) -> ItemOutcome:
        """Do it once; raises StepError when it failed."""
        spent = 0
        try:
            if self._step.is_command:
                if recovers:
                    spent = (await self._ask(f"{key}/recovery", self._recovery(last))).cost
                reply = await self._run(key, self._step.command, self._scope)
            else:
                reply = await self._ask(key, self._request(last, recovers=recovers))
        except FAILED_CALL as error:
            raise StepError(words_of(error), cost=spent + cause_of(error).cost) from error
        try:
            done = await self._proved(key, reply)
        except BadOutput as error:
            raise StepError(error.message, output=reply.text, cost=spent + reply.cost) from error
        return replace(done, cost=done.cost + spent)

    async def _proved(self, key: str, reply: Reply) -> ItemOutcome:
        """Return what a reply came to; raises BadOutput when it does not do."""
        if self._step.is_command:
            _require_success("the command", reply)
        elif wrong := _FLAWS.get(reply.quality_given(())):
            raise BadOutput(wrong)
        values = extracted(reply.text, self._step.extract, self._step.schema)
        if self._step.check:
            _require_success("the check", await self._check(key, reply))
        return ItemOutcome(output=reply.text, values=values, cost=reply.cost)

    async def _check(self, key: str, reply: Reply) -> Reply:
        try:
            return await self._run(f"{key}/check", self._step.check, self._scope.with_words(output=reply.text))
        except FAILED_CALL as error:
            raise BadOutput(f"the check failed: {words_of(error)}") from error

    async def _ask(self, key: str, request: Request) -> Reply:
        step = self._step
        return await self._ctx.call(
            step.agent, request, key=key, timeout=step.timeout_secs, stream=True, dispatch=step.dispatch
        )

    def _request(self, last: FailedTry | None, *, recovers: bool) -> Request:
        prompt = self._expanded(self._step.prompt)
        if last is None:
            return self._asking((Message(role=Role.USER, text=prompt),))
        if recovers:
            again = self._expanded(self._step.recovery, error=last.error)
        else:
            again = f"That failed: {last.error}\n\nDo it again so that it does not fail."
        if not last.output.strip():
            return self._asking((Message(role=Role.USER, text=f"{prompt}\n\n{again}"),))
        return self._asking(
            (
                Message(role=Role.USER, text=prompt),
                Message(role=Role.ASSISTANT, text=last.output),
                Message(role=Role.USER, text=again),
            )
        )

    def _recovery(self, last: FailedTry | None) -> Request:
        text = self._expanded(self._step.recovery, error=last.error if last else "")
        return self._asking((Message(role=Role.USER, text=text),))

    def _asking(self, messages: tuple[Message, ...]) -> Request:
        return Request(
            messages=messages,
            system=self._expanded(self._step.system),
            max_tokens=self._step.max_tokens,
            settings=self._step.settings,
            volatile={"cwd": self._spec.tree} if self._spec.tree else {},
        )

    async def _run(self, key: str, command: tuple[str, ...], scope: Scope) -> Reply:
        """Run a command; every exit code is an answer, and what looks like a secret is taken out of its output."""
        argv = _arguments(command, scope.value_of)
        folder = self._spec.tree or self._spec.folder
        running = Command(argv=argv, folder=folder, exits=ANY_EXIT, quotes=True)
        request = Request(messages=(Message(role=Role.USER),))
        return await self._ctx.call(running, request, key=key, timeout=self._step.timeout_secs)

    def _expanded(self, text: str, **words: Json) -> str:
        return parse_template(text).expand(self._scope.with_words(**words).value_of) if text else ""


def _arguments(command: tuple[str, ...], value_of: Callable[[str], Json]) -> tuple[str, ...]:
    """Return the arguments of a command, each value as one of them; raises BadOutput for one that cannot be passed."""
    found = tuple(parse_template(word).expand(value_of) for word in command)
    for word in found:
        if "\0" in word:
            raise BadOutput("a value with a NUL character cannot be an argument of a command")
        if (size := len(word.encode("utf-8", "surrogatepass"))) > MAX_ARGUMENT:
            raise BadOutput(f"a value of {size:,} bytes cannot be an argument of a command; at most {MAX_ARGUMENT:,}")
    return found


def _require_success(what: str, reply: Reply) -> None:
    code = 0 if reply.trace is None else reply.trace.exit
    if code:
        log = reply.trace.log if reply.trace else ""
        said = one_line((log.strip() or reply.text.strip())[-1_000:], 500)
        raise BadOutput(f"{what} exited with code {code}" + (f": {said}" if said else ""))
