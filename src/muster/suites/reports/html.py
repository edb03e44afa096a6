"""The report as one HTML file that fetches nothing: page, style, script and data are all inside it."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from importlib.resources import files
from typing import Any, TextIO

from muster import __version__
from muster.domain.canonical import JsonObject
from muster.domain.media import digest_of
from muster.domain.money import show_usd, to_usd
from muster.reporting.look import TOKENS
from muster.suites.reports.figures import figures, steadiness
from muster.suites.reports.json_report import case_view
from muster.suites.reports.rows import CaseRow, CaseRows, council_words
from muster.suites.reports.run import ShownFile, Spoken, SuiteRun, Turn
from muster.suites.reports.summary import MAX_SECONDS, MIN_SECONDS, NOT_PASSED, TICKS, SubjectLine, SuiteReport
from muster.suites.values.case import Case
from muster.suites.values.verdict import CaseResult, CheckResult, ItemScore, Judgement
from muster.text.plain import plain_words
from muster.text.words import count, moment, seconds_of, shorten

SCRIPTS = ("page_basics.js", "page_overview.js", "page_charts.js", "page_cases.js", "page_panel.js")


async def write_html(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    """Write the page; its rows are written one by one."""
    style = TOKENS + _asset("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();"
    before, after = _asset("page.html").replace("@POLICY@", policy(style, script)).split("@DATA@")
    out.write(before.replace("@STYLE@", style))
    await _write_data(suite, report, out)
    out.write(after.replace("@SCRIPT@", script))


def policy(style: str, script: str) -> str:
    """Allow exactly this style and this script, and nothing from anywhere."""
    only = f"style-src {_named(style)}; script-src {_named(script)}"
    return f"default-src 'none'; img-src data:; {only}; base-uri 'none'; form-action 'none'"


def _named(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (files("muster.suites.reports") / "page" / name).read_text(encoding="utf-8")


async def _write_data(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    out.write(embedded(head_json(report)).removesuffix("}") + ',"rows":[')
    rows, between = PageRows(suite, report), "\n"
    async for row in rows:
        out.write(between + embedded(row))
        between = ",\n"
    out.write(f'\n],"shown":{embedded(rows.told())}')
    between = ',"files":{\n'
    async for digest, address in _addresses(suite, rows.files):
        out.write(f"{between}{embedded(digest)}:{embedded(address)}")
        between = ",\n"
    out.write("}}" if between == ",\n" else "}")


async def _addresses(suite: SuiteRun, files: Iterable[ShownFile]) -> AsyncIterator[tuple[str, str]]:
    """Yield images as data addresses, each once, as long as there is room; the page names all others."""
    room = MAX_PICTURES
    for file in files:
        if file.type not in PICTURES:
            continue
        data = await suite.store.media.read(file.digest)
        if data is not None and digest_of(data) == file.digest and len(data) <= room:
            room -= len(data)
            yield file.digest, f"data:{file.type};base64,{b64encode(data).decode()}"


ALL_UP_TO = 2000  # cases; beyond, a page holds what did not pass and a sample of the rest
MAX_TROUBLES = 2000  # rows
SAMPLE = 500  # rows
MAX_CONVERSATION = 64_000_000  # characters of conversations
MAX_PICTURES = 16_000_000  # bytes of images, each counted once
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def embedded(value: Any) -> str:
    """Spell a value as JSON that cannot end the element it stands in, nor become part of a script."""
    spelled = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        spelled = spelled.replace(character, f"\\u{ord(character):04x}")
    return spelled


class PageRows:
    """Gives the rows of the page; afterwards `told` says what is not among them."""

    def __init__(self, suite: SuiteRun, report: SuiteReport) -> None:
        self._suite, self._report, self._spoken = suite, report, Spoken(suite)
        self._everything = report.cases <= ALL_UP_TO
        others = report.rows - report.not_passed
        self._step = max(1, -(-others // SAMPLE))  # every so many rows that passed one is shown
        self._room = MAX_CONVERSATION
        self._troubles = self._others = self._shown = self._silent = 0
        self._files: dict[str, ShownFile] = {}

    @property
    def files(self) -> Iterable[ShownFile]:
        """The images and documents of the conversations on the page, each once."""
        return self._files.values()

    async def __aiter__(self) -> AsyncIterator[JsonObject]:
        """Yield the rows as JSON."""
        async for row in CaseRows(self._suite):
            if self._takes(row):
                self._shown += 1
                yield row_values(row) | {"epochs": await self._epochs(row)}

    def _takes(self, row: CaseRow) -> bool:
        if row.status in NOT_PASSED:
            self._troubles += 1
            return self._everything or self._troubles <= MAX_TROUBLES
        self._others += 1
        return self._everything or (self._others - 1) % self._step == 0

    async def _epochs(self, row: CaseRow) -> list[JsonObject]:
        found = []
        for result in row.results:
            said = await self._spoken.conversation(row.case, result)
            talk = talk_values(said)
            size = sum(len(str(message["text"])) for message in talk)
            self._room -= size
            self._silent += self._room < 0
            if self._room >= 0:
                self._files.update((file.digest, file) for turn in said for file in turn.shown)
            found.append(epoch_values(row.case, result) | {"talk": talk if self._room >= 0 else None})
        return found

    def told(self) -> str:
        """Return what is not on the page; nothing when all of it is."""
        parts = []
        if not self._everything:
            parts.append(
                f"This run has {count(self._report.rows, 'row')}, too many for one page. Here are {self._shown:,}: "
                f"{min(self._troubles, MAX_TROUBLES):,} of {self._troubles:,} that did not pass, and of the others "
                f"one in {self._step:,}. The figures and charts above are of all of them."
            )
        if self._silent:
            parts.append(f"{count(self._silent, 'conversation')} did not fit into this file.")
        return " ".join(parts)


MAX_TEXT = 50_000  # characters of one message
MAX_NOTE = 4000
MAX_LABEL = 200
MAX_TURNS = 400


def head_json(report: SuiteReport) -> JsonObject:
    """Return everything but the rows."""
    return {
        "ok": report.ok,
        "pending": report.pending,
        "verdict": report.verdict,
        "run": {"id": report.run.id, "name": report.run.title, "facts": list(_facts(report))},
        "warnings": list(report.warnings),
        "counts": {str(status): number for status, number in report.counts.items()},
        "subjects": [_subject(line) for line in report.subjects],
        "thinks": any(line.stats.thinking_tokens for line in report.subjects),
        "latency_axis": {"least": MIN_SECONDS, "most": MAX_SECONDS, "ticks": TICKS[::2]},
        "footer": f"Made by muster {__version__} from the stored run {report.run.id}.",
    }


def _facts(report: SuiteReport) -> Iterator[tuple[str, str]]:
    run = report.run
    yield "Run", run.id
    yield "State", str(run.state)
    yield "Cases", f"{report.cases:,}" + (f" × {count(run.epochs, 'epoch')}" if run.epochs > 1 else "")
    yield "Started", (moment(run.started_at) or "not yet").replace("T", " ")[:19] + (" UTC" if run.started_at else "")
    if run.seconds is not None:
        yield "Took", seconds_of(run.seconds)
    yield "Spent", show_usd(run.spent.billed)
    if run.spent.imputed:
        yield "Covered by a subscription", show_usd(run.spent.imputed)
    if run.spent.uncertain:
        yield "Uncertain", show_usd(run.spent.uncertain)
    yield from ((f"Saved by {name}", show_usd(saved)) for name, saved in run.savings)
    if run.cap is not None:
        yield "Budget", show_usd(run.cap)
    if run.judge:
        yield "Judge", run.judge


def _subject(line: SubjectLine) -> JsonObject:
    found = figures(line)
    per_case = found.cost_per_case
    return asdict(found) | {
        "label": line.label,
        "rank": line.rank,
        "told_apart": line.told_apart,
        "model": line.model,
        "steadiness": steadiness(line.stats),
        "statuses": {str(status): number for status, number in line.counts.items()},
        "scores": line.score_bins,
        "latency": line.second_bins,
        "cost": to_usd(found.cost),
        "cost_per_case": None if per_case is None else per_case / 1_000_000,
    }


def row_values(row: CaseRow) -> JsonObject:
    """Return a row, without its epochs."""
    return case_view(row).builtins() | {
        "threshold": row.threshold or 0.0,
        "why": shorten(row.why, MAX_NOTE),
        "description": shorten(plain_words(row.case.description), MAX_NOTE),
        "cost": to_usd(row.cost),
    }


def epoch_values(case: Case, result: CaseResult) -> JsonObject:
    """Return one epoch, without its conversation."""
    described = {item.id: item.description for item in case.rubric}
    return {
        "epoch": result.epoch,
        "status": str(result.status),
        "score": result.score,
        "why": shorten(result.why, MAX_NOTE),
        "quality": str(result.quality),
        "seconds": result.seconds,
        "cost": to_usd(result.cost),
        "judge_cost": to_usd(result.judge_cost),
        "tokens": [result.input_tokens, result.output_tokens],
        "model": result.model,
        "golden": result.golden,
        "checks": [_check(check) for check in result.checks],
        "items": [_item(item, described.get(item.id, "")) for item in result.items],
        "judges": [_judge(judgement) for judgement in result.judgements],
    }


def _check(check: CheckResult) -> JsonObject:
    return {
        "name": check.name,
        "passed": check.passed,
        "broken": check.broken,
        "expected": shorten(check.expected, MAX_NOTE),
        "why": shorten(check.why, MAX_NOTE),
    }


def _item(item: ItemScore, description: str) -> JsonObject:
    return {
        "id": item.id,
        "description": shorten(description, MAX_NOTE),
        "weight": item.weight,
        "critical": item.critical,
        "score": item.score,
        "by": item.by,
        "rationale": shorten(item.rationale, MAX_NOTE),
        "evidence": item.evidence[:MAX_NOTE],
        "quoted": item.quoted,
        "samples": list(item.samples),
    }


def _judge(judgement: Judgement) -> JsonObject:
    return {
        "by": judgement.by,
        "model": judgement.model,
        "version": judgement.version,
        "agreement": judgement.agreement,
        "failures": [shorten(failure, MAX_NOTE) for failure in judgement.failures],
        **({"members": [shorten(one, MAX_NOTE) for one in council_words(judgement)]} if judgement.members else {}),
    }


def talk_values(said: Sequence[Turn]) -> list[JsonObject]:
    """Return a conversation; of one that is very long its beginning and its end."""
    half = MAX_TURNS // 2
    if len(said) > MAX_TURNS:
        gap = Turn(role="system", text=f"… {len(said) - 2 * half:,} messages are left out here …")
        said = [*said[:half], gap, *said[-half:]]
    return [_turn(turn) for turn in said]


def _turn(turn: Turn) -> JsonObject:
    calls = [
        {
            "name": use.name,
            "arguments": shorten(use.arguments, MAX_NOTE),
            "result": None if use.result is None else shorten(use.result, MAX_NOTE),
            "failed": use.failed,
        }
        for use in turn.uses
    ]
    shown = [[file.digest, shorten(file.label, MAX_LABEL)] for file in turn.shown]
    return {
        "role": turn.role,
        "text": shorten(turn.text, MAX_TEXT),
        **({"calls": calls} if calls else {}),
        **({"files": shown} if shown else {}),
    }
