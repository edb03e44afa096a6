"""Which verdict of a run a person means."""

from difflib import get_close_matches

from muster.domain.errors import BadArgument, NotFound
from muster.domain.verdict import CaseResult
from muster.reports.suite_run import SuiteRun

NEAR = 5  # names that are shown
MOST_NAMES = 20_000  # that are looked through for near ones


async def find_target(suite: SuiteRun, case: str, subject: str | None, epoch: int | None) -> CaseResult:
    """Give the one result that is meant; says what is missing to tell it from others."""
    mine = [result async for result in suite.results() if result.case == case]
    if not mine:
        raise await _unknown(suite, case)
    chosen = [result for result in mine if subject in (None, result.subject)]
    if not chosen:
        raise NotFound(f"{case} has no result of {subject!r}", suggestions=_distinct("--subject", mine, "subject"))
    if len({result.subject for result in chosen}) > 1:
        raise BadArgument(
            f"{case} has results of several subjects", suggestions=_distinct("--subject", mine, "subject")
        )
    found = [result for result in chosen if epoch in (None, result.epoch)]
    if not found:
        raise NotFound(f"{case} has no result of epoch {epoch}", suggestions=_distinct("--epoch", chosen, "epoch"))
    if len(found) > 1:
        raise BadArgument(f"{case} has results of several epochs", suggestions=_distinct("--epoch", chosen, "epoch"))
    return found[0]


def _distinct(option: str, results: list[CaseResult], name: str) -> tuple[str, ...]:
    values = dict.fromkeys(getattr(result, name) for result in results)
    return tuple(f"{option} {value}" for value in values)[:NEAR]


async def _unknown(suite: SuiteRun, case: str) -> NotFound:
    names: list[str] = []
    async for one in suite.cases():
        if one.id == case:
            return NotFound(f"run {suite.run.id} has no result of {case} yet")
        if len(names) < MOST_NAMES:
            names.append(one.id)
    ends = [name for name in names if name.endswith(f"/{case}")]
    near = list(dict.fromkeys([*ends, *get_close_matches(case, names, NEAR)]))
    return NotFound(f"run {suite.run.id} has no case {case!r}", suggestions=tuple(near[:NEAR]))
