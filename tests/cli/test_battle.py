"""`muster battle` and `muster scale`: what they print, their envelopes, reports and exit codes."""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import muster
from muster.cli.battles.order import BattleProgress, ScaleProgress
from muster.cli.main import run
from tests.battles.home import CLERK, GOAL, GUEST, NO, YES, scripted
from tests.rehearsal import ForkedRehearsal

from .shell import Result, Shell

REVISED = json.dumps({"prompt": "Be quick.", "reasons": ["It is slow."]})
JUDGE = ({"text": "Propose a better", "answer": REVISED}, {"text": "4711", "answer": YES}, {"answer": NO})
SIDES = ("-a", "clerk", "-c", "guest", "-j", "judge")
BATTLE = ("battle", *SIDES, "--goal", GOAL)
SCALE = ("scale", *SIDES, "--goal", GOAL)


@dataclass
class BattleFolder:
    """The command in this process, in a folder with agents."""

    folder: Path
    _capsys: pytest.CaptureFixture[str]

    def muster(self, *arguments: str) -> Result:
        code = run([*arguments])
        seen = self._capsys.readouterr()
        return Result(code=code, out=seen.out, err=seen.err)


def write_agents(folder: Path) -> None:
    sections = [scripted(folder, "clerk", CLERK), scripted(folder, "guest", GUEST), scripted(folder, "judge", JUDGE)]
    sections.append('[agents.me]\nkind = "human"\n')
    (folder / "muster.toml").write_text("\n".join(sections), encoding="utf-8")


@pytest.fixture
def battles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[BattleFolder]:
    monkeypatch.chdir(tmp_path)
    write_agents(tmp_path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield BattleFolder(tmp_path, capsys)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_battle_prints_what_was_said_and_decided(battles: BattleFolder) -> None:
    done = battles.muster(*BATTLE)
    assert done.code == 0, done.err
    assert "  6 agent        Your table is booked: number 4711." in done.out
    assert "turn 3, confirm judge: yes (0.90) so it is" in done.out
    assert "the goal is reached after 3 replies of clerk" in done.out
    told = battles.muster("battle", "messages", "last", "--since-seq", "5", "--json").data()
    assert [one["seq"] for one in told["messages"]] == [6]
    decided = battles.muster("battle", "decisions", "last", "--json").data()
    assert [(one["turn"], one["stage"], one["verdict"]) for one in decided][-1] == (3, "confirm", "yes")
    status = battles.muster("battle", "status", "last", "--json").data()
    assert (status["state"], status["endedReason"], status["turn"], status["lastSeq"]) == ("completed", "goal", 3, 6)


def test_a_battle_that_does_not_reach_its_goal_exits_with_1(battles: BattleFolder) -> None:
    done = battles.muster(*BATTLE, "--message-limit", "2", "--json")
    assert done.code == 1
    envelope = done.envelope()
    assert "the limit came before the goal" in envelope["error"]["message"]
    assert envelope["data"]["endedReason"] == "limit"
    assert battles.muster("runs", "watch", "last").code == 1
    assert battles.muster("battle", *SIDES[:4], "--message-limit", "2").code == 0  # no goal: the limit is its end


@pytest.mark.parametrize(
    ("given", "ending", "state"),
    [
        (("-a", "sim/fail"), "error", "failed"),
        (("-a", "sim/slow", "--timeout", "0.2"), "timeout", "timeout"),
    ],
)
def test_what_keeps_a_battle_from_its_end_is_told_with_what_was_said(
    battles: BattleFolder, given: tuple[str, ...], ending: str, state: str
) -> None:
    done = battles.muster("battle", "-c", "guest", "-j", "judge", "--goal", GOAL, *given, "--json")
    assert done.code == 1
    data = done.envelope()["data"]
    assert (data["endedReason"], data["state"], data["messages"][0]["content"]) == (ending, state, GOAL)


def test_validators_are_given_as_words_and_as_a_file(battles: BattleFolder) -> None:
    (battles.folder / "schema.json").write_text('{"type": "object"}', encoding="utf-8")
    no = [{"kind": "contains", "text": "how many", "on_match": "no", "on_miss": "uncertain"}]
    (battles.folder / "more.json").write_text(json.dumps(no), encoding="utf-8")
    words = ("--validator", "regex=4711", "--validator", "json_schema=schema.json", "--validators", "more.json")
    done = battles.muster("battle", *SIDES[:4], *words, "--json").data()
    assert [one["criteriaApplied"][0].partition(":")[0] for one in done["decisions"]] == [
        *("regex", "json_schema", "contains") * 2,
        "regex",
    ]
    assert done["endedReason"] == "goal"


def test_reports_are_written_in_every_format(battles: BattleFolder) -> None:
    reports = ("--report", "html=r.html", "--report", "markdown=r.md", "--report", "json=r.json")
    assert battles.muster(*BATTLE, "--system", "<b>", *reports).code == 0
    texts = [(battles.folder / name).read_text() for name in ("r.html", "r.md")]
    assert [("<h2>Conversation</h2>" in text, "# Conversation\n" in text) for text in texts] == [
        (True, False),
        (False, True),
    ]
    page = (battles.folder / "r.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "Your table is booked" in page
    assert "| confirm | yes |" in (battles.folder / "r.md").read_text(encoding="utf-8")
    assert json.loads((battles.folder / "r.json").read_text(encoding="utf-8"))["endedReason"] == "goal"
    assert battles.muster(*SCALE, "--runs", "2", "--report", "html=s.html", "--report", "markdown=s.md").code == 0
    assert "## Revised prompt, proposed by `judge`" in (battles.folder / "s.md").read_text(encoding="utf-8")
    assert battles.muster("report", "last", "--format", "json", "--json").data()["report"]["counts"]["goal"] == 2
    assert "reached the goal" in battles.muster("report", "last").out


def test_a_scale_test_prints_its_endings_and_that_a_prompt_was_not_tried(battles: BattleFolder) -> None:
    done = battles.muster(*SCALE, "--runs", "3")
    assert done.code == 0, done.err
    assert "3 of 3 battles reached the goal (100.0%, 95% interval 43.9% to 100.0%)" in done.out
    assert "revised prompt, proposed by judge:\nBe quick." in done.out
    assert "It was not tried: nothing says that it is better." in done.out
    status = battles.muster("scale", "status", "last", "--json").data()
    assert (status["completed"], status["total"], status["counts"]["goal"]) == (3, 3, 3)


def test_a_scale_test_without_a_goal_is_played_to_its_limit(battles: BattleFolder) -> None:
    done = battles.muster("scale", "-a", "clerk", "-c", "guest", "--runs", "2", "--message-limit", "2", "--json")
    assert (done.code, done.data()["counts"]["limit"]) == (0, 2)


def test_a_scale_test_below_its_gate_exits_with_1(battles: BattleFolder) -> None:
    done = battles.muster(*SCALE, "--runs", "2", "--message-limit", "1", "--min-goal-rate", "0.5", "--json")
    assert done.code == 1
    envelope = done.envelope()
    assert "0 of 2 battles reached the goal" in envelope["error"]["message"]
    assert envelope["data"]["ok"] is False


def test_a_revised_prompt_is_tried_on_the_same_goals(battles: BattleFolder) -> None:
    (battles.folder / "goals.yaml").write_text("goals: [a table, a chair]\n", encoding="utf-8")
    done = battles.muster("scale", *SIDES, "--goals", "goals.yaml", "--try-revised", "--json").data()
    assert (done["total"], done["comparison"]["pairs"], done["comparison"]["result"]) == (
        2,
        2,
        "no difference is shown",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("battle", "-a", "nobody", *SIDES[2:], "--goal", GOAL), 3, "unknown agent 'nobody'"),
        (("battle", *SIDES[:4], "--goal", GOAL), 2, "a goal needs a judge"),
        (("battle", *SIDES, "--goal", " "), 2, "goal is empty"),
        ((*BATTLE, "--message-limit", "26"), 2, "message-limit"),
        ((*BATTLE, "--validator", "color=red"), 2, "the kind of a validator must be"),
        ((*BATTLE, "--validator", "regex=("), 2, "is not a regular expression"),
        ((*BATTLE, "--validators", "missing.json"), 5, "no such file"),
        ((*BATTLE, "--timeout", "0"), 2, "more than 0"),
        ((*BATTLE, "--budget", "-1"), 2, "must be more than 0"),
        (("battle", "-a", "clerk", "-c", "guest", "-j", "me", "--goal", GOAL), 2, "is a person and cannot judge"),
        ((*SCALE, "--runs", "11"), 2, "runs must be at most 10, not 11"),
        ((*SCALE, "--concurrency", "4"), 2, "concurrency must be at most 3, not 4"),
        ((*SCALE, "--goals", "missing.yaml"), 2, "cannot be used together"),
        (("scale", *SIDES, "--goals", "missing.yaml"), 5, "no such file"),
        (
            (*SCALE, "--no-revision", "--try-revised"),
            2,
            "--no-revision and --reviser or --try-revised",
        ),
        (("scale", *SIDES[:4], "--min-goal-rate", "0.5"), 2, "needs a judge or validators"),
        (("battle", "status", "last"), 5, "no battle yet"),
        (("scale", "status", "last"), 5, "no scale test yet"),
    ],
)
def test_what_cannot_be_played_is_refused_before_anything_is_stored(
    battles: BattleFolder, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = battles.muster(*arguments, "--json")
    assert done.code == code, done.out
    assert words in done.error()["message"]
    assert battles.muster("runs", "list", "--json").data() == []


BOUNDS = "out_of_bounds"


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        (
            (*BATTLE, "--message-limit", "26", "--plateau-turns", "x", "--temprature", "1"),
            [("--temprature", "unknown"), ("--message-limit", BOUNDS), ("--plateau-turns", "invalid")],
        ),
        (
            (*BATTLE, "--message-limit", "26", "--plateau-turns", "x"),
            [("--message-limit", BOUNDS), ("--plateau-turns", "invalid")],
        ),
        ((*BATTLE, "--timeout", "0", "--budget", "0"), [("--timeout", BOUNDS), ("--budget", BOUNDS)]),
        (
            (*SCALE, "--runs", "99", "--concurrency", "9"),
            [("--runs", BOUNDS), ("--concurrency", BOUNDS)],
        ),
        (("battle", *SIDES[:4], "--goal", GOAL), [("--judge", "missing")]),
        (("battle", *SIDES[:4], "--judge", "nobody"), [("--judge", "invalid")]),
        (("scale", *SIDES[:4], "--confirm-judge", "nobody"), [("--confirm-judge", "invalid")]),
        (
            ("battle", "-a", "no", "-c", "none", "--plateau-turns", "3"),
            [("--plateau-turns", "invalid"), ("--agent", "invalid"), ("--counterpart", "invalid")],
        ),
        (("battle", "-a", "no", "-c", "none"), [("--agent", "invalid"), ("--counterpart", "invalid")]),
        (
            ("scale", "-a", "clerk", "-c", "none", "--goal", "x", "--goals", "no.yaml", "--plateau-turns", "3"),
            [
                ("--goals", "conflict"),
                ("--goal", "conflict"),
                ("--judge", "missing"),
                ("--plateau-turns", "invalid"),
                ("--counterpart", "invalid"),
            ],
        ),
    ],
)
def test_everything_that_is_wrong_is_told_by_the_names_of_options(
    battles: BattleFolder, arguments: tuple[str, ...], fields: list[tuple[str, str]]
) -> None:
    error = battles.muster(*arguments, "--json").error()
    assert sorted((one["path"], one["code"]) for one in error["fields"]) == sorted(fields)
    assert all(path in error["message"] for path, code in fields if code in (BOUNDS, "unknown"))
    assert "timeout_secs" not in error["message"]


async def test_progress_shows_the_last_messages_and_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_agents(tmp_path)
    async with muster.open(tmp_path / ".muster") as m:
        spec = m.battles.spec("clerk", "guest", goal=GOAL, judge="judge")
        played = await (await m.battles.start(spec)).wait()
        seen = await BattleProgress(m).look(played, 0)
        assert (seen.done, seen.total, seen.unit) == (3, 25, "replies")
        assert [line.strip() for line in seen.below][-3:] == [
            "6 agent        Your table is booked: number 4711.",
            "turn 3, judge judge: yes (0.90) so it is",
            "turn 3, confirm judge: yes (0.90) so it is",
        ]
        scale = await (await m.battles.scales.start(m.battles.scales.spec(spec, runs=2, reviser=""))).wait()
        many = await ScaleProgress(m).look(scale, 0)
        assert (many.done, many.total, many.words.startswith("2 goal")) == (2, 2, True)


def test_a_detached_scale_test_goes_on_in_any_process(shell: Shell, slow_batches: ForkedRehearsal) -> None:
    shell.use(slow_batches)
    models = ("-a", "anthropic/claude-haiku-5-5", "-c", "openai/gpt-5-mini", "--validator", "contains=never")
    terms = ("--runs", "2", "--message-limit", "1", "--dispatch", "batch", "--detach", "--budget", "1.00")
    left = shell.muster("scale", *models, *terms)
    assert left.code == 0, left.err
    assert "waits for batches of its child runs" in left.out
    status = shell.muster("scale", "status", "last", "--json").data()
    assert (status["state"], status["completed"], len(status["conversationIds"])) == ("waiting", 0, 2)
    done = shell.muster("runs", "resume", "last", "--poll-interval", "0.2", "--json").data()
    assert (done["state"], done["counts"]["limit"]) == ("completed", 2)
    assert len(slow_batches.audit().batches) == 1
