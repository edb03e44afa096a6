"""Reading suites in: before the first call everything is in the journal, and no file is looked at again."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import msgspec

from muster.domain.canonical import Json
from muster.domain.case import Case
from muster.domain.errors import BadArgument, BadFile, Conflict, NotFound
from muster.domain.suite import PAGE, SNAPSHOT, Prompt, Snapshot, SuiteInfo, cases_key
from muster.engine.context import Context
from muster.formats.finding import find_suites
from muster.formats.flaw import Flaw
from muster.formats.packing import pack, spell
from muster.formats.selection import Selection
from muster.formats.suite import Suite, open_suite
from muster.formats.suite_spec import SuiteSpec
from muster.workloads.aside import Aside

LONGEST_PROMPT = 1_000_000  # bytes
MOST_WARNINGS = 20
_LONGEST_SUITE = 100  # characters of its name in an id that is made here


async def read_in(ctx: Context, spec: SuiteSpec) -> Snapshot:
    """Give what was read in; whoever resumes the run gets the very same."""
    value = await ctx.step(SNAPSHOT, lambda: _read(ctx, spec))
    return msgspec.convert(value, Snapshot)


async def _read(ctx: Context, spec: SuiteSpec) -> Json:
    reading, aside = Reading(spec), Aside()
    cases, pages = reading.cases(), 0
    try:
        while page := tuple(islice(cases, PAGE)):
            await aside.do(_keep(ctx, pages, page))
            pages += 1
    finally:
        await aside.done()
    return msgspec.to_builtins(reading.snapshot(pages))


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
        self.first += flaws[: MOST_WARNINGS - len(self.first)]


class Reading:
    """Goes through the suites of a spec once, case by case, and counts."""

    def __init__(self, spec: SuiteSpec) -> None:
        self._spec = spec
        self._suites = [open_suite(path) for path in find_suites([Path(path) for path in spec.path])]
        self._prompts = tuple(_prompt(path) for path in spec.prompts)
        _require_distinct(self._prompts)
        self._infos: list[SuiteInfo] = []
        self._asked = 0
        self.warnings = Warnings()

    def cases(self) -> Iterator[Case]:
        """Give the cases that are selected; none at all is an error."""
        seen: set[bytes] = set()
        for suite in self._suites:
            yield from self._of(suite, seen)
        if not any(info.cases for info in self._infos):
            raise NotFound(_nothing(self._spec), suggestions=("muster validate PATH", "leave the filter out"))

    def outline(self) -> Snapshot:
        """Give what is known before the first case is read."""
        infos = [SuiteInfo(name=suite.name, file=suite.file, digest="", prompt=suite.prompt) for suite in self._suites]
        return Snapshot(suites=tuple(infos), prompts=self._prompts)

    def snapshot(self, pages: int) -> Snapshot:
        """Give what was seen, after the last case."""
        infos = tuple(info for info in self._infos if info.cases)
        cases = sum(info.cases for info in infos)
        return Snapshot(suites=infos, prompts=self._prompts, cases=cases, pages=pages, asked=self._asked)

    def _of(self, suite: Suite, seen: set[bytes]) -> Iterator[Case]:
        spec = self._spec
        only = None if spec.only is None else frozenset(spec.only)
        selection = Selection(filter=spec.filter, tags=spec.tags, only=only)
        whole, count, outline = hashlib.sha256(), 0, self.outline()
        usual = len(spec.subjects(outline))
        self.warnings.take(suite.doubts)
        for case, told in suite.cases_to_run():
            if not selection.takes(case):
                continue
            self.warnings.take(told)
            if len(self._suites) > 1:  # one alone sees to it by itself
                case = self._distinct(case, seen)
            count += 1
            self._asked += len(spec.tested_on(case, outline)) if case.agents or case.flaw else usual
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
        return replace(case, id=f"{case.suite[:_LONGEST_SUITE]}/damaged-{place}")


def _prompt(path: str) -> Prompt:
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no prompt {path}") from None
    except OSError as error:
        raise BadFile(path, f"cannot be read: {error.strerror}") from error
    if len(data) > LONGEST_PROMPT:
        raise BadFile(path, f"is longer than {LONGEST_PROMPT:,} bytes, which is no prompt")
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
    chosen = {"--filter": spec.filter, "--tags": ",".join(spec.tags), "the cases named": ",".join(spec.only or ())}
    given = ", ".join(f"{name} {value}" for name, value in chosen.items() if value)
    return f"no case of {', '.join(spec.path)} is selected" + (f" by {given}" if given else "")
