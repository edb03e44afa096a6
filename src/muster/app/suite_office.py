"""What the command line does with suite runs besides driving them: survey them, find them, see what did not pass."""

from pathlib import Path

from muster.app.loads import Quoting
from muster.app.muster import Muster
from muster.app.suite_survey import Survey, Surveyor
from muster.domain.call import ask
from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.domain.run import Dispatch, Run
from muster.domain.verdict import Status
from muster.formats.suite_spec import SuiteSpec
from muster.reports.cassette import runs_of
from muster.reports.suite_run import open_suite_run

__all__ = [
    "Quoting",
    "Survey",
    "file_of",
    "find_or_import",
    "find_suite_run",
    "is_answers",
    "not_passed",
    "require_judge",
    "survey",
]

_LOOKED_AT = 256  # bytes at the beginning of a file


def survey(muster: Muster, spec: SuiteSpec, dispatch: Dispatch, quoting: Quoting) -> Survey:
    """Say what a run would do; raises what would keep it from being done."""
    return Surveyor(muster.directory, spec, dispatch, quoting).survey()


def require_judge(muster: Muster, spec: SuiteSpec) -> None:
    """Raise what would keep the judge of a spec from being asked: nobody is named, no key, no price."""
    if spec.judge is None:
        raise BadArgument("nobody is named who is to judge", suggestions=("add --judge AGENT",))
    judge = muster.directory.find(spec.judge)
    judge.quote(judge.profile.complete(ask("")))


def is_answers(path: Path) -> bool:
    """Whether a file holds recorded answers and not a run: one JSON list instead of lines."""
    try:
        with path.open("rb") as file:
            return file.read(_LOOKED_AT).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from error


async def find_or_import(muster: Muster, reference: str) -> Run:
    """Give a run by its reference, or by a file it was exported to; that is imported, unless it is known here."""
    path = file_of(reference)
    if path is None:
        return await _find(muster, reference)
    known = await muster.store.runs.get(runs_of(path)[0])
    return known if known is not None else await muster.import_run(path)


async def find_suite_run(muster: Muster, reference: str) -> Run:
    """Return the run of a reference; `last` is the last run of a suite, whatever was run after it."""
    if reference != "last":
        return await muster.find(reference)
    found = await muster.newest(("suite",))
    if found is None:
        ways = ("muster run PATH --agent A", "muster runs list")
        raise NotFound("this store has no suite run yet", suggestions=ways)
    return found


def file_of(reference: str) -> Path | None:
    """Give the file that a reference names, if there is one."""
    path = Path(reference)
    return path if path.is_file() else None


async def not_passed(muster: Muster, run: Run) -> tuple[str, ...]:
    """Give the cases of a run that did not pass with everyone in every epoch, also those it never came to."""
    suite = await open_suite_run(muster.store, run)
    cases = {case.id: bool(case.skip) async for case in suite.cases()}
    bad = {result.case async for result in suite.results() if result.status not in (Status.PASSED, Status.SKIPPED)}
    seen = {result.case async for result in suite.results()}
    return tuple(case for case, skipped in cases.items() if case in bad or not (skipped or case in seen))


async def _find(muster: Muster, reference: str) -> Run:
    try:
        return await find_suite_run(muster, reference)
    except NotFound as error:
        raise NotFound(f"{error.message}, and no file of that name", suggestions=error.suggestions) from None
