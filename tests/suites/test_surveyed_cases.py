"""A run that is started from its plan: the files are read once, and what is stored is the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.app.suites.plan import SuitePlan
from muster.domain.errors import BadArgument, BadFile, MusterError
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.suites.cases import CaseReader
from muster.suites.spec import SuiteSpec, read_spec
from muster.suites.surveyed_cases import CaseCollector
from tests.suites.format.suites import write
from tests.suites.stage import MODEL, Cases, Stage, a_case, a_suite, stage
from tests.variants import first_of

HEAD = "schema_version: 1\nskill_or_agent: s\ncases:\n"
CHANGING = ("run", "id", "timings", "seconds", "duration", "latency")  # and all that ends with _at


def spec_of(folder: Path, **more: Any) -> SuiteSpec:
    return read_spec({"path": [str(folder / "cases.yaml")], "agents": [MODEL], **more})


def in_lines(folder: Path, *cases: Cases) -> Path:
    """Write a suite whose cases are not parsed before they are read."""
    return write(folder, HEAD + "".join(f"- {json.dumps(case)}\n" for case in cases))


async def started(s: Stage, spec: SuiteSpec, plan: SuitePlan | None = None, origin: Origin | None = None) -> Run:
    return await (await s.muster.suites.start(spec, plan=plan, origin=origin)).wait()


async def exported(s: Stage, run: Run) -> list[dict[str, Any]]:
    """Return the entries of a run as they are exported, in the order in which they were stored."""
    file = s.folder / f"{run.id}.jsonl"
    await s.muster.runs.export(run.id, file)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line["entry"] for line in lines if "entry" in line]


async def entries(s: Stage, run: Run) -> dict[str, Any]:
    """Return the entries of a run by key, without ids and times."""
    return {entry["key"]: _timeless(entry) for entry in await exported(s, run)}


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key not in CHANGING and not key.endswith("_at")}
    if isinstance(value, str) and value.startswith("["):  # a page of results has times too
        return [_timeless(item) for item in json.loads(value)]
    return [_timeless(item) for item in value] if isinstance(value, list) else value


async def case_pages(s: Stage, run: Run) -> list[tuple[str, Any]]:
    """Return what was read in, byte for byte and in the order in which it was stored."""
    return [(entry["key"], entry["value"]) for entry in await exported(s, run) if entry["key"].startswith("suite")]


@pytest.mark.parametrize("writing", first_of([a_suite, in_lines]))
async def test_a_run_from_its_plan_stores_what_one_stores_that_reads_its_files(
    tmp_path: Path, writing: Callable[..., object]
) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(110)), encoding="utf-8")
    rows = a_case("rows", "{{n}}", dataset={"file": "rows.jsonl"})
    broken = {"id": "s/broken", "input": {"messages": "none"}}
    writing(tmp_path, a_case("one"), rows, broken, a_case("later", skip="not yet"), a_case("letters", "ä €"))
    spec = spec_of(tmp_path)
    async with stage(tmp_path) as s:
        plan = s.muster.suites.plan(spec, keep=True)
        assert plan.surveyed is not None
        assert len(plan.surveyed.pages) == 2
        planned, read = await started(s, spec, plan), await started(s, spec)
        assert planned.state is read.state is RunState.COMPLETED
        assert await case_pages(s, planned) == await case_pages(s, read)
        assert await entries(s, planned) == await entries(s, read)
        assert planned.result == read.result
        assert planned.calls == read.calls


async def test_what_was_planned_is_run_even_when_the_file_changes_before_the_start(tmp_path: Path) -> None:
    a_suite(tmp_path, a_case("before", "old"))
    spec = spec_of(tmp_path)
    async with stage(tmp_path) as s:
        kept, other = (s.muster.suites.plan(spec, keep=keep) for keep in (True, False))
        a_suite(tmp_path, a_case("after", "new"))
        assert [result.case for result in await s.results(await started(s, spec, kept))] == ["s/before"]
        assert [result.case for result in await s.results(await started(s, spec, other))] == ["s/after"]
        (tmp_path / "cases.yaml").unlink()
        assert [result.case for result in await s.results(await started(s, spec, kept))] == ["s/before"]


async def test_a_run_from_a_plan_is_resumed_without_its_files(tmp_path: Path) -> None:
    a_suite(tmp_path, a_case("one"), a_case("two", "no"))
    spec = spec_of(tmp_path)
    async with stage(tmp_path) as s:
        first = await started(s, spec, s.muster.suites.plan(spec, keep=True))
        (tmp_path / "cases.yaml").unlink()
        forked = await s.muster.runs.fork(first.id, f"case/s/one/@{MODEL}/1/1")
        again = await s.muster.runs.drive(forked).wait()
        assert again.result == first.result


async def test_a_run_that_takes_over_steps_has_the_cases_of_the_run_it_comes_from(tmp_path: Path) -> None:
    a_suite(tmp_path, a_case("before"))
    spec = spec_of(tmp_path)
    async with stage(tmp_path) as s:
        first = await started(s, spec)
        a_suite(tmp_path, a_case("after"))
        plan = s.muster.suites.plan(spec, keep=True)
        for reuse, case in ((Reuse.REPLIES, "s/before"), (Reuse.CALLS, "s/after")):
            run = await started(s, spec, plan, Origin(run=first.id, reuse=reuse))
            assert [result.case for result in await s.results(run)] == [case]


async def test_a_plan_of_another_spec_is_refused(tmp_path: Path) -> None:
    a_suite(tmp_path, a_case("one"))
    async with stage(tmp_path) as s:
        plan = s.muster.suites.plan(spec_of(tmp_path), keep=True)
        with pytest.raises(BadArgument, match="another spec"):
            await s.muster.suites.start(spec_of(tmp_path, epochs=2), plan=plan)
        assert s.muster.suites.plan(spec_of(tmp_path)).surveyed is None


def test_cases_that_take_too_much_room_are_not_kept(tmp_path: Path) -> None:
    a_suite(tmp_path, *(a_case(f"n{number}", f"{number * 7919:x}" * 50) for number in range(350)))
    spec = spec_of(tmp_path)
    for most, pages in ((1_000_000, 4), (1_000, None)):
        reading, collector = CaseReader(spec), CaseCollector(most)
        for case in reading.cases():
            collector.add(case)
        known = collector.surveyed(reading, spec)
        assert (None if known is None else len(known.pages)) == pages


ASKED = "- id: s/{}\n  input: {{messages: [{{role: user, content: hello}}]}}\n"
GOOD = ASKED + "  expected: {{output: [{{kind: contains, value: x}}]}}\n"
JUDGED = ASKED + "  evaluator_config: {{evaluator: judge}}\n  expected: {{rubric: [{{id: a, description: b}}]}}\n"
DEEP = "- " + "[" * 70 + "]" * 70 + "\n"


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        # Nobody is named who judges the first case; what cannot be parsed goes first all the same.
        (JUDGED.format("one") + "- [b\n", "not valid YAML"),
        (JUDGED.format("one") + DEEP, "more than 64 levels deep"),
        (JUDGED.format("one") + "- {a: 1, a: 2, b: " + "[" * 70 + "]" * 70 + "}\n", "more than 64 levels deep"),
        (JUDGED.format("one") + " schema: 1\n", "not valid YAML"),
        (JUDGED.format("one") + GOOD.format("two"), "needs a judge"),
        (GOOD.format("one") + "---\na: 1\n", "a second document begins here"),
        (GOOD.format("one") + "cases: []\n", "stands here twice"),
        (GOOD.format("one") + "b: \x1b\n", "control character"),
        ("", "cases must be a list"),
    ],
)
async def test_a_survey_refuses_first_what_cannot_be_parsed(tmp_path: Path, cases: str, words: str) -> None:
    write(tmp_path, HEAD + cases)
    spec = spec_of(tmp_path)
    async with stage(tmp_path) as s:
        with pytest.raises(MusterError, match=words) as caught:
            s.muster.suites.plan(spec)
        if isinstance(caught.value, BadFile):
            with pytest.raises(BadFile) as whole:
                list(CaseReader(spec).cases())
            assert (str(caught.value), caught.value.line) == (str(whole.value), whole.value.line)


async def test_a_deep_part_below_an_anchor_damages_its_case_only(tmp_path: Path) -> None:
    deep = "- {id: s/deep, context: &a " + "[" * 70 + "]" * 70 + "}\n"
    write(tmp_path, HEAD + GOOD.format("one") + deep)
    async with stage(tmp_path) as s:
        plan = s.muster.suites.plan(spec_of(tmp_path))
        assert (plan.cases, len(plan.warnings)) == (2, 1)
        assert "64 levels deep" in plan.warnings[0].message
