"""`muster council`, `council inject|stop` and `muster trace`: what they print, their envelopes and exit codes."""

import asyncio
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import muster
from muster.cli.councils.order import CouncilProgress
from muster.cli.councils.table import support_lines, tell_council
from muster.cli.main import run
from muster.councils.rules.outcome import CouncilOutcome
from muster.councils.rules.scoring import Contribution
from tests.councils.home import council_home, declared, program, spec_of

from .shell import Result

AGENTS = {
    "ada": program(answer="42 for sure"),
    "bob": program(answer="42, I think"),
    "cyd": program(answer="41", word="41"),
    "odd": program("fails"),
}
MODERATOR = {
    "text": "It is 42. One member finds that it does not say 41.",
    "dissent": [{"number": 1, "passage": "One member finds that it does not say 41."}],
}
THREE = ("-a", "ada", "-a", "bob", "-a", "cyd", "--seed", "7")


@dataclass
class CouncilFolder:
    """The command in this process, in a folder with agents."""

    folder: Path
    _capsys: pytest.CaptureFixture[str]

    def muster(self, *arguments: str) -> Result:
        code = run([*arguments])
        seen = self._capsys.readouterr()
        return Result(code=code, out=seen.out, err=seen.err)


@pytest.fixture
def councils(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CouncilFolder]:
    monkeypatch.chdir(tmp_path)
    moderator = '[agents.mod]\nkind = "scripted"\nscript = "mod.yaml"\n'
    (tmp_path / "mod.yaml").write_text(json.dumps({"otherwise": json.dumps(MODERATOR)}), encoding="utf-8")
    (tmp_path / "muster.toml").write_text(declared(AGENTS, moderator), encoding="utf-8")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield CouncilFolder(tmp_path, capsys)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_council_prints_its_answer_and_why_it_stopped(councils: CouncilFolder) -> None:
    done = councils.muster("council", "What is 6 × 7?", *THREE)
    assert done.code == 0, done.err
    assert done.out.startswith("42")
    assert "its rounds are used up" in done.out
    assert "dissent: cyd gives it -80" in done.out
    told = councils.muster("trace", "last")
    assert told.code == 0
    assert "Round 1" in told.out
    assert "cyd proposes: 41" in told.out
    assert "ada → cyd -80: it does not say 42" in told.out


def test_the_envelope_holds_the_matrix_the_costs_and_the_reason(councils: CouncilFolder) -> None:
    data = councils.muster("council", "What is 6 × 7?", *THREE, "--json").data()
    assert data["winner"]["text"].startswith("42")
    assert data["stop"]["reason"] == "rounds"
    assert {one["agent"] for one in data["costs"]} == {"ada", "bob", "cyd"}
    cells = {(one["evaluator"], one["target"]) for one in data["rounds"][0]["matrix"]}
    assert len(cells) == 6
    again = councils.muster("trace", "last", "--json").data()
    assert again["rounds"] == data["rounds"]


def test_reports_are_written_in_every_format(councils: CouncilFolder) -> None:
    done = councils.muster(
        "council", "What is <b>6 × 7</b>?", *THREE, "--report", "html=r.html", "--report", "markdown=r.md"
    )
    assert done.code == 0, done.err
    page = (councils.folder / "r.html").read_text(encoding="utf-8")
    assert "What is &lt;b&gt;6 × 7&lt;/b&gt;?" in page
    assert "<script" not in page
    assert "How support moved" in page
    text = (councils.folder / "r.md").read_text(encoding="utf-8")
    assert "## Dissent" in text
    assert councils.muster("report", "last", "--format", "json").code == 0


def test_a_synthesis_says_which_dissent_it_keeps(councils: CouncilFolder) -> None:
    data = councils.muster("council", "What is 6 × 7?", *THREE, "--synthesis", "mod", "--json").data()
    assert data["synthesis"]["text"] == MODERATOR["text"]
    assert (data["synthesis"]["kept"], data["synthesis"]["lost"]) == (["cyd"], [])


def test_a_baseline_is_weighed_by_the_same_members(councils: CouncilFolder) -> None:
    data = councils.muster("council", "What is 6 × 7?", *THREE, "--rounds", "1", "--baseline", "cyd", "--json").data()
    found = data["baseline"]
    assert found["samples"] == 3
    assert set(found["support"]) == {"the council", "cyd#1", "cyd#2", "cyd#3"}
    assert (found["council_usd"], found["baseline_usd"]) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("council", "q", "-a", "ada"), 2, "from 2 to 50 members, not 1"),
        (("council", "q", "-a", "ada", "-a", "ada"), 2, "more than once"),
        (("council", "q", "-a", "ada", "-a", "nobody"), 3, "unknown agent 'nobody'"),
        (("council", " ", "-a", "ada", "-a", "bob"), 2, "QUESTION is empty"),
        (("council", "q", "--policy", "missing.yaml"), 5, "no such file"),
        (("council", "stop", "last"), 5, "no council yet"),
    ],
)
def test_what_cannot_be_held_is_refused_before_anything_is_stored(
    councils: CouncilFolder, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = councils.muster(*arguments, "--json")
    assert done.code == code
    assert words in done.error()["message"]
    assert councils.muster("runs", "list", "--json").data() == []


def test_a_council_without_a_quorum_fails_and_says_who_is_missing(councils: CouncilFolder) -> None:
    done = councils.muster("council", "q", "-a", "ada", "-a", "odd", "--json")
    assert done.code == 1
    assert "odd: failed" in done.envelope()["error"]["message"]
    trace = councils.muster("trace", "last")
    assert trace.code == 0
    assert "the council failed after 0 rounds" in trace.out
    assert "Round 1, propose: the round is not complete and does not count" in trace.out
    assert "ada proposes: 42 for sure" in trace.out
    assert "odd has no part in propose: failed" in trace.out


def test_agents_join_those_of_a_policy_and_the_whole_is_counted(councils: CouncilFolder) -> None:
    (councils.folder / "council.yaml").write_text("agents: [{agent: ada}]\n", encoding="utf-8")
    alone = councils.muster("validate", "council.yaml")
    assert alone.code == 2
    assert "a council has from 2 to 50 members, not 1: it needs 1 more" in alone.out + alone.err
    joined = councils.muster("council", "q", "--policy", "council.yaml", "--agent", "bob", "--json").data()
    assert [one["name"] for one in joined["members"]] == ["ada", "bob"]
    still = councils.muster("council", "q", "--policy", "council.yaml", "--json")
    assert still.code == 2
    assert "it needs 1 more" in still.error()["message"]


def test_a_baseline_that_decides_nothing_says_so(councils: CouncilFolder) -> None:
    done = councils.muster("council", "q", *THREE, "--rounds", "1", "--baseline", "ada")
    assert "baseline: no answer is supported; " in done.out  # as many are for it as against it


POLICY = "agents: [{agent: ada}, {agent: bob}, {agent: cyd}]\nrounds: 2\nmin_rounds: 2\n"


def test_a_policy_and_files_make_a_council(councils: CouncilFolder) -> None:
    (councils.folder / "council.yaml").write_text(POLICY, encoding="utf-8")
    (councils.folder / "notes.txt").write_text("it is a product", encoding="utf-8")
    assert councils.muster("validate", "council.yaml").out == "council.yaml: council of 3 agents\n"
    done = councils.muster("council", "q", "--policy", "council.yaml", "--file", "notes.txt", "--json").data()
    assert len(done["rounds"]) == 2
    assert done["question"] == "q\n\n# File notes.txt\nit is a product"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("panel.yaml", POLICY),
        ("panel.yml", "rounds: 2\nagents:\n  - agent: ada\n  - agent: bob\n  - {role: x, agent: cyd}\n"),
        ("panel.toml", '[[agents]]\nagent = "ada"\n[[agents]]\nagent = "bob"\n[[agents]]\nagent = "cyd"\n'),
    ],
)
def test_a_policy_is_known_by_its_members_whatever_its_name(councils: CouncilFolder, name: str, text: str) -> None:
    (councils.folder / name).write_text(text, encoding="utf-8")
    assert councils.muster("validate", name).out == f"{name}: council of 3 agents\n"
    wrong = councils.muster("run", name, "--agent", "ada", "--json")
    assert "is the policy of a council, not a suite" in wrong.error()["message"]


def test_a_moderator_of_a_policy_writes_the_answer(councils: CouncilFolder) -> None:
    moderated = POLICY.replace("[{agent", "[{agent: mod, role: moderator}, {agent", 1)
    (councils.folder / "council.yaml").write_text(moderated, encoding="utf-8")
    assert councils.muster("validate", "council.yaml").out == "council.yaml: council of 3 agents and a moderator\n"
    data = councils.muster("council", "q", "--policy", "council.yaml", "--seed", "7", "--json").data()
    assert data["synthesis"]["agent"] == "mod"
    assert {one["agent"] for one in data["rounds"][0]["proposals"]} == {"ada", "bob", "cyd"}
    other = councils.muster("council", "q", "--policy", "council.yaml", "--synthesis", "ada", "--json")
    assert "the answer is written by the moderator 'mod', not by 'ada'" in other.error()["message"]


def test_what_people_send_reaches_a_council_that_is_queued(councils: CouncilFolder) -> None:
    async def submit() -> str:
        async with muster.open(".muster") as m:
            return (await m.councils.submit(m.councils.spec("q", ["ada", "bob", "cyd"], rounds=1))).id

    panel = asyncio.run(submit())
    assert councils.muster("council", "inject", "last", "in base 13", "--json").data()["payload"] == "in base 13"
    assert councils.muster("worker", "--until-idle").code == 0
    told = councils.muster("trace", panel).out
    assert "a person tells all before propose: in base 13" in told
    assert "ada proposes: 42 for sure in base 13" in told
    late = councils.muster("council", "stop", panel, "--json")
    assert "no longer receives signals" in late.error()["message"]


def test_a_council_that_is_stopped_before_its_first_round_has_no_answer(councils: CouncilFolder) -> None:
    async def submit() -> str:
        async with muster.open(".muster") as m:
            return (await m.councils.submit(m.councils.spec("q", ["ada", "bob"]))).id

    panel = asyncio.run(submit())
    assert councils.muster("council", "stop", panel).code == 0
    councils.muster("worker", "--until-idle")
    assert councils.muster("runs", "watch", panel).code == 1
    assert "no proposal won after 0 rounds; a person stopped it" in councils.muster("trace", panel).out


def test_the_events_of_another_run_are_listed(councils: CouncilFolder) -> None:
    assert councils.muster("ask", "sim/echo", "hello").code == 0
    told = councils.muster("trace", "last")
    assert told.code == 0
    assert "call.done" in told.out


async def test_progress_tells_the_round_who_is_writing_and_the_support(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "muster.toml").write_text(declared(AGENTS), encoding="utf-8")
    async with muster.open(tmp_path / ".muster") as m:
        handle = await m.councils.start(m.councils.spec("q", ["ada", "bob", "cyd"], rounds=1))
        source = CouncilProgress(m)
        async for event in handle.events():
            if event.kind == "council.round.started":
                break
        first = await source.look(await handle.run(), 3)
        assert first.activity.startswith("round 1, ")
        assert first.activity.endswith(" writing")
        last = await source.look(await handle.wait(), 0)
        assert (last.done, last.total, last.unit) == (1, 1, "rounds")
        assert len(last.below) == 3


async def test_progress_tells_who_weighs_a_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "muster.toml").write_text(declared(AGENTS), encoding="utf-8")
    async with muster.open(tmp_path / ".muster") as m:
        handle = await m.councils.start(m.councils.spec("q", ["ada", "bob", "cyd"], rounds=1, seed=7, baseline="cyd"))
        last = await CouncilProgress(m).look(await handle.wait(), 0)
        judges = {cell.evaluator for cell in _baseline_cells(await m.councils.result(handle.id))}
        assert last.activity == f"the answers are compared: {', '.join(sorted(judges))} weighing"


def _baseline_cells(outcome: CouncilOutcome) -> tuple[Contribution, ...]:
    assert outcome.baseline is not None
    assert outcome.baseline.score is not None
    return outcome.baseline.score.contributions


def test_a_council_of_many_shows_the_bars_of_those_with_the_most_support() -> None:
    lines = list(support_lines({f"m{number:02}": 1.0 - number / 10 for number in range(20)}))
    assert len(lines) == 13
    assert lines[0].startswith("m00")
    assert lines[-1] == "and 8 with less support"


def test_bars_of_support_are_as_long_as_the_support_is_strong() -> None:
    assert list(support_lines({"a": -1.0, "bob": 2.0})) == [
        "bob  +2.000 ████████████████████",
        "a    -1.000 ░░░░░░░░░░",
    ]


async def test_a_matrix_that_is_too_wide_leaves_out_proposals_and_cuts_no_number(tmp_path: Path) -> None:
    many = {f"member-{number}": program(answer=str(40 + number)) for number in range(8)}
    async with council_home(tmp_path, toml=declared(many)) as home:
        run = await home.hold(spec_of(*many, rounds=1))
        console = Console(width=60, file=StringIO())
        tell_council(console, await home.muster.councils.trace_of(run))
    told = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert any("4 with less support are not shown; see them all" in line for line in told)
    row = next(line for line in told if line.startswith(" member-0"))
    assert "+100" in row
    assert len(row) <= 60
