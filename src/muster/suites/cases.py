"""The cases of a run: read in, selected, and multiplied by subjects and epochs."""

import asyncio
import hashlib
from collections import ChainMap
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import count, islice
from pathlib import Path
from typing import Any

from muster.domain.advice import ArgumentAdvice
from muster.domain.errors import BadArgument, BadFile, Conflict, NotFound, did_you_mean
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.engine.context import Context
from muster.suites.case_media import keep_media, media_of
from muster.suites.format.discovery import find_suites
from muster.suites.format.suite import Suite, open_suite
from muster.suites.journal import (
    PAGE,
    REPEATABLE,
    SNAPSHOT,
    Prompt,
    Subject,
    SuiteInfo,
    SuiteSnapshot,
    case_key,
    cases_key,
    cases_of,
    pack,
    results_key,
    results_of,
    spell,
)
from muster.suites.spec import CaseSelection, SuiteSpec
from muster.suites.values.case import Case, tag_key
from muster.suites.values.verdict import CaseResult
from muster.text import typed
from muster.text.document_tree import Flaw

MAX_PROMPT = 1_000_000  # bytes
MAX_WARNINGS = 20
MAX_UNSELECTED = 1000  # ids that are kept to hint at
SHOWN_UNSELECTED = 10
_MAX_SUITE = 100  # characters of its name in an id that is made here


async def read_in(ctx: Context, spec: SuiteSpec) -> SuiteSnapshot:
    """Return what was read in; whoever resumes the run gets the very same."""
    value = await ctx.recall(SNAPSHOT, inherited=True)  # whoever surveyed the cases may have recorded it
    if value is None:
        value = await ctx.step(SNAPSHOT, lambda: _read(ctx, spec))
    return typed.convert(value, SuiteSnapshot)


async def _read(ctx: Context, spec: SuiteSpec) -> Any:
    reading, aside = CaseReader(spec), Aside()
    cases, pages = reading.cases(), 0
    try:
        while page := tuple(islice(cases, PAGE)):
            await keep_media(ctx, media_of(page), reading.media_paths)
            await aside.do(_keep(ctx, pages, page))
            pages += 1
    finally:
        await aside.done()
    return typed.to_builtins(reading.snapshot(pages))


async def _keep(ctx: Context, number: int, page: tuple[Case, ...]) -> None:
    """Keep a page of cases; a crash in the middle of reading must not mix two versions of a file."""
    packed = pack(page)
    if await ctx.step(cases_key(number), lambda: packed) != packed:
        raise Conflict("the suite was changed after this run had begun to read it in", suggestions=("start a new run",))


class Warnings:
    """What is wrong or doubtful in the cases of a run: the first ones, and how many there are."""

    def __init__(self) -> None:
        self.first: list[Flaw] = []
        self.count = 0

    def take(self, flaws: Sequence[Flaw]) -> None:
        """Note some more."""
        self.count += len(flaws)
        self.first += flaws[: MAX_WARNINGS - len(self.first)]


class UnselectedCases:
    """The first ids and the tags of cases that were not selected, for hints at what a filter could have named."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._tags: dict[str, None] = {}
        self._count = 0

    def take(self, case: Case) -> None:
        """Note one more, as long as there is room."""
        self._count += 1
        if len(self._ids) < MAX_UNSELECTED:
            self._ids.append(case.id)
            self._tags |= dict.fromkeys(case.tags)

    def hints(self, spec: SuiteSpec) -> tuple[str, ...]:
        """Return what to type instead of a filter or tags that select nothing."""
        found: list[str] = []
        if spec.filter is not None:
            names = {name: id_ for id_ in self._ids for name in (id_, id_.partition("/")[2])}
            if not any(fnmatchcase(name, spec.filter) for name in names):
                found += did_you_mean(tuple(dict.fromkeys(names[near] for near in _close(spec.filter, names))))
        if spec.tags:
            near = (name for tag in spec.tags for name in _close(tag, self._tags))
            found += did_you_mean(tuple(dict.fromkeys(near)))
            found.append(f"tags: {_listed(list(self._tags), len(self._tags))}" if self._tags else "no case has a tag")
        return (*found, f"cases: {_listed(self._ids, self._count)}") if self._ids else tuple(found)


def _close(wanted: str, known: Iterable[str]) -> list[str]:
    return get_close_matches(wanted.strip("*"), list(known), n=3)


def _listed(names: Sequence[str], count: int) -> str:
    shown = ", ".join(names[:SHOWN_UNSELECTED])
    return shown if count <= SHOWN_UNSELECTED else f"{shown} and {count - SHOWN_UNSELECTED:,} more"


class CaseReader:
    """Goes through the suites of a spec once, case by case, and counts.

    Files are parsed before their first case is read; with `once` while they are read, where that is possible.
    """

    def __init__(self, spec: SuiteSpec, *, once: bool = False) -> None:
        self._spec = spec
        self._suites = [open_suite(path, once=once) for path in find_suites([Path(path) for path in spec.path])]
        self._prompts = tuple(_prompt(path) for path in spec.prompts)
        _require_distinct(self._prompts)
        self._infos: list[SuiteInfo] = []
        self._asked = 0
        self._unselected = UnselectedCases()
        self._tags: set[str] = set()  # of all cases that came by, where some are asked for
        self.warnings = Warnings()

    def cases(self) -> Iterator[Case]:
        """Yield the cases that are selected; none at all is an error."""
        seen: set[bytes] = set()
        for suite in self._suites:
            yield from self._of(suite, seen)
        if not any(info.cases for info in self._infos):
            raise NotFound(_nothing(self._spec), suggestions=self._unselected.hints(self._spec))
        self.warnings.take([self._no_case_has(tag) for tag in self._spec.tags if tag_key(tag) not in self._tags])

    @property
    def media_paths(self) -> Mapping[str, Path]:
        """Where the images and documents are that cases show, by digest; of those cases that came by."""
        return ChainMap(*(dict(suite.media) for suite in self._suites))

    def _no_case_has(self, tag: str) -> Flaw:
        return Flaw(file=", ".join(self._spec.path), message=f"no case has the tag {tag!r}", code="unused-tag")

    def outline(self) -> SuiteSnapshot:
        """Return what is known before the first case is read."""
        infos = [SuiteInfo(name=suite.name, file=suite.file, digest="", prompt=suite.prompt) for suite in self._suites]
        return SuiteSnapshot(suites=tuple(infos), prompts=self._prompts)

    def snapshot(self, pages: int) -> SuiteSnapshot:
        """Return what was seen, after the last case."""
        infos = tuple(info for info in self._infos if info.cases)
        cases = sum(info.cases for info in infos)
        return SuiteSnapshot(suites=infos, prompts=self._prompts, cases=cases, pages=pages, asked=self._asked)

    def _of(self, suite: Suite, seen: set[bytes]) -> Iterator[Case]:
        spec = self._spec
        only = None if spec.only is None else frozenset(spec.only)
        selection = CaseSelection(filter=spec.filter, tags=spec.tags, only=only)
        whole, count, outline = hashlib.sha256(), 0, self.outline()
        usual = len(spec.subjects(outline))
        self.warnings.take(suite.doubts)
        for case, told in suite.cases_to_run():
            if spec.tags:
                self._tags.update(map(tag_key, case.tags))
            if not selection.takes(case):
                self._unselected.take(case)
                continue
            if told:
                self.warnings.take(told)
            if len(self._suites) > 1:  # one alone sees to it by itself
                case = self._distinct(case, seen)
            count += 1
            self._asked += len(spec.tested_on(case, outline)) if case.has_own_subjects or case.flaw else usual
            whole.update(spell(case).encode("utf-8", "surrogatepass"))
            yield case
        self._infos.append(
            SuiteInfo(
                name=suite.name,
                file=suite.file,
                digest=whole.hexdigest(),
                prompt=suite.prompt,
                cases=count,
                bundle=suite.bundle,
            )
        )

    def _distinct(self, case: Case, seen: set[bytes]) -> Case:
        """Return a case under an id that no other case of this run has: a damaged one is renamed, others refused."""
        name = hashlib.sha256(case.id.encode()).digest()[:8]  # of 100,000 ids whole ones would fill the memory
        if name not in seen:
            seen.add(name)
            return case
        if not case.flaw:
            raise BadFile(case.file, f"case {case.id}: another case of this run has the same id", line=case.line)
        place = hashlib.sha256(f"{case.file}:{case.id}".encode()).hexdigest()[:8]
        return replace(case, id=f"{case.suite[:_MAX_SUITE]}/damaged-{place}")


def _prompt(path: str) -> Prompt:
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFound(f"no such prompt file: {path}") from None
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_PROMPT:
        raise BadFile(path, f"is longer than {MAX_PROMPT:,} bytes, too long for a prompt")
    try:
        return Prompt(name=Path(path).stem, text=data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadFile(path, "is not UTF-8") from error


def _require_distinct(prompts: tuple[Prompt, ...]) -> None:
    names = [prompt.name for prompt in prompts]
    for name in names:
        if names.count(name) > 1:
            raise BadArgument(f"two prompts are called {name!r}", suggestions=("rename one of the files",))


def _nothing(spec: SuiteSpec) -> str:
    chosen = {"the filter": spec.filter, "the tags": ",".join(spec.tags), "the cases named": ",".join(spec.only or ())}
    given = ", ".join(f"{name} {value}" for name, value in chosen.items() if value)
    return f"no case of {', '.join(spec.path)} matches" + (f" {given}" if given else "")


STEPS_OF_PROGRESS = 100  # into how many pages the results of a small run are divided, so that its progress is seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One case, one subject, one epoch."""

    case: Case
    subject: Subject
    epoch: int
    system: str
    key: str  # below which everything stands that is done for it
    known: CaseResult | None = None  # what an earlier driver of this run found out


class Units:
    """Gives the units of a run, with what is known of each."""

    def __init__(self, spec: SuiteSpec, snapshot: SuiteSnapshot) -> None:
        self._spec, self._snapshot = spec, snapshot
        self._subjects = spec.subjects(snapshot)
        self._prompts = {prompt.name: prompt.text for prompt in snapshot.prompts}
        self._beside = {suite.file: suite.prompt or "" for suite in snapshot.suites}
        self.total = snapshot.asked * spec.epochs
        self.page_size = max(1, min(PAGE, self.total // STEPS_OF_PROGRESS))

    def of(self, case: Case) -> Iterator[Unit]:
        """Yield the units of one case; a case with agents of its own is asked of those instead."""
        subjects = self._spec.tested_on(case, self._snapshot) if case.has_own_subjects or case.flaw else self._subjects
        for subject in subjects or _nobody(case):
            system = self._prompts[subject.prompt] if subject.prompt else self._beside.get(case.file, "")
            label = subject.label
            for epoch in range(1, self._spec.epochs + 1):
                key = case_key(case.id, label, epoch)
                yield Unit(case=case, subject=subject, epoch=epoch, system=system, key=key)

    async def all(self, ctx: Context) -> AsyncIterator[Unit]:
        """Yield every unit: the cases in order, for each the subjects, for each the epochs."""
        number = 0
        known: tuple[CaseResult, ...] = ()
        for page in range(self._snapshot.pages):
            for unit in await self._units(ctx, page):
                place = number % self.page_size
                if place == 0:
                    known = await newest_page(ctx, self._spec.tag, number // self.page_size)
                yield replace(unit, known=known[place]) if place < len(known) else unit
                number += 1

    async def _units(self, ctx: Context, page: int) -> Iterator[Unit]:
        value = await ctx.recall(cases_key(page), inherited=True)  # an heir takes it over, since its reports need it
        if value is None:
            raise NotFound(f"page {page} of the cases that were read in is gone", suggestions=("start a new run",))
        cases = cases_of(value)
        return (unit for case in cases for unit in self.of(case))


def _nobody(case: Case) -> tuple[Subject, ...]:
    message = f"no agent given for case {case.id} ({case.file}:{case.line})"
    raise BadArgument.of(
        [FieldFlaw(path="agents", message=message, code=FlawCode.MISSING, by_itself=True)],
        suggestions=(
            ArgumentAdvice("agent", "anthropic/MODEL"),
            ArgumentAdvice("agent", "sim/echo", words="or try it without a key: {}"),
        ),
    )


async def newest_page(ctx: Context, tag: str, number: int) -> tuple[CaseResult, ...]:
    """Return the last version of a page that this run kept; nothing when there is none.

    An heir has none at first: it looks at every case again, and so takes over the calls that led to the results.
    """
    newest: tuple[CaseResult, ...] = ()
    for version in count(1):
        found = results_of(await ctx.recall(results_key(tag, number, version)))
        if not found:
            break
        newest = found
        if not mendable(newest):
            break
    return newest


async def keep_page(ctx: Context, tag: str, number: int, results: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
    """Keep the results of a page, and give those that stand from now on.

    What is there already is taken over, version by version, so that an heir has all that its reports need.
    """
    packed = pack(results)
    for version in count(1):
        kept = await ctx.step(results_key(tag, number, version), lambda: packed)
        if kept == packed:
            break
        standing = results_of(kept)
        if standing == results:  # an older version spelled them without fields that it did not know
            break
        if not mendable(standing):
            return standing
    return results


def mendable(results: tuple[CaseResult, ...]) -> bool:
    """Return whether something in a page may come out otherwise when it is tried again."""
    return any(result.status in REPEATABLE for result in results)


class Aside:
    """Does things in order, each while its caller goes on; an error comes up with the next thing, or at the end."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin something, as soon as the thing before it is done."""
        try:
            await self.done()
        except BaseException:
            work.close()
            raise
        self._task = asyncio.create_task(work)
        await asyncio.sleep(0)  # it is under way from now on, also if the caller does not wait for anything

    async def done(self) -> None:
        """Wait for the last thing."""
        task, self._task = self._task, None
        if task is not None:
            await task

    async def abandon(self) -> None:
        """Let go of the last thing, if it is still under way."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
