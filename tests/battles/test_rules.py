"""The rules of battles: when one ends, what validators say, how judges are read, and how prompts are compared."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.battles.judge import judge_question
from muster.battles.prompts import OPENING, agent_request, counterpart_request, spoken, spoken_so_far
from muster.battles.rules import is_plateau, is_reached, stop_after
from muster.battles.scale_spec import MAX_CONCURRENT, MAX_RUNS, ScaleSpec, read_scale, require_limits, stored_scale
from muster.battles.scale_summary import PairedComparison, compared
from muster.battles.spec import BattleSpec, read_spec, stored
from muster.battles.validators import ReplyValidator, ValidatorKind, read_program, validate, validator_flaws
from muster.battles.values import (
    BattleDecision,
    BattleEnding,
    BattleMessage,
    DecisionSource,
    GoalVerdict,
    failed_verdict,
)
from muster.domain.call import Quality, Reply, Role, Stop
from muster.domain.errors import BadArgument
from muster.judging.structured import read_structured
from muster.text.limited.allowance import CpuAllowance
from tests.battles.home import YES, verdict

SPEC = BattleSpec(agent="a", counterpart="b", goal="win", judge="j")
SAID = (
    BattleMessage(seq=1, role=Role.USER, content="hello"),
    BattleMessage(seq=2, role=Role.ASSISTANT, content="hi"),
)


def decided(source: DecisionSource, verdict: GoalVerdict, confidence: float | None = None) -> BattleDecision:
    return BattleDecision(turn=1, source=source, verdict=verdict, confidence=confidence)


V, J, C = DecisionSource
Y, N, U = GoalVerdict


@pytest.mark.parametrize(
    ("said", "reached"),
    [
        ([(V, Y)], True),
        ([(V, U), (J, Y), (C, Y)], True),
        ([(J, Y)], False),
        ([(J, Y), (C, U)], False),
        ([(J, Y), (C, N)], False),
        ([(J, N)], False),
        ([], False),
    ],
)
def test_a_goal_is_reached_by_a_validator_or_by_both_judges(
    said: Sequence[tuple[DecisionSource, GoalVerdict]], reached: bool
) -> None:
    assert is_reached([decided(*one) for one in said]) is reached


@pytest.mark.parametrize(
    ("confidences", "turns", "over"),
    [
        ([0.1, 0.1], 1, True),
        ([0.1, 0.2], 1, False),
        ([0.5, 0.2, 0.4], 2, True),
        ([0.5, 0.2, 0.6], 2, False),
        ([0.1, 0.1], 2, False),
        ([None, None], 1, True),
        ([None, 0.0], 1, False),
    ],
)
def test_a_plateau_is_no_rise_above_the_best_before(confidences: list[float | None], turns: int, over: bool) -> None:
    assert is_plateau(confidences, turns) is over


def test_the_goal_goes_before_the_limit_and_the_limit_before_the_plateau() -> None:
    reached, not_yet = (decided(V, Y, 1.0),), (decided(J, N, 0.1),)
    stop = stop_after([not_yet, reached], limit=2, plateau_turns=1)
    assert stop is not None
    assert stop.ending is BattleEnding.GOAL
    stop = stop_after([not_yet, not_yet], limit=2, plateau_turns=1)
    assert stop is not None
    assert (stop.ending, stop.detail) == (BattleEnding.LIMIT, "")
    assert stop_after([not_yet], limit=2, plateau_turns=1) is None


@pytest.mark.parametrize(
    ("validator", "reply", "said"),
    [
        (ReplyValidator(kind=ValidatorKind.REGEX, pattern="^a+$"), "aaa", Y),
        (ReplyValidator(kind=ValidatorKind.REGEX, pattern="^a+$", on_miss=N), "b", N),
        (ReplyValidator(kind=ValidatorKind.CONTAINS, text="Straße", ignore_case=True), "in der STRASSE", Y),
        (ReplyValidator(kind=ValidatorKind.CONTAINS, text="a"), "A", U),
        (ReplyValidator(kind=ValidatorKind.JSON_SCHEMA, schema={"required": ["n"]}), 'Here: {"n": 1}', Y),
        (ReplyValidator(kind=ValidatorKind.JSON_SCHEMA, schema={"type": "object"}), "no JSON", U),
    ],
)
def test_a_validator_says_what_a_match_or_a_miss_means(
    validator: ReplyValidator, reply: str, said: GoalVerdict
) -> None:
    assert list(validator_flaws(validator, CpuAllowance(1))) == []
    assert validate(validator, reply, CpuAllowance(1)).verdict is said


@pytest.mark.parametrize(
    ("text", "said", "words"),
    [
        ("YES\n", Y, ""),
        ('{"verdict": "no", "reason": "not yet"}', N, "not yet"),
        ("maybe", U, "not valid"),
        ('{"verdict": "perhaps"}', U, "not yes, no or uncertain"),
        ("", U, "not valid"),
    ],
)
def test_a_program_answers_with_a_word_or_an_object(text: str, said: GoalVerdict, words: str) -> None:
    found = read_program(text)
    assert found.verdict is said
    assert words in found.reason


@pytest.mark.parametrize(
    ("reply", "flaw"),
    [
        (Reply(text=YES), ""),
        (Reply(text=f"```json\n{YES}\n```"), ""),
        (Reply(text=f"I say {YES}"), "JSON"),
        (Reply(text=YES, stop=Stop.MAX_TOKENS), "cut off"),
        (Reply(text=YES, stop=Stop.REFUSED), "refusal"),
        (Reply(text=verdict("no", 0.9)), "contradicts"),
        (Reply(text=verdict("maybe", 0.5)), "does not fit"),
        (Reply(text=YES.replace('["booked"]', "[]")), "names the conditions that were checked"),
        (Reply(text=YES.replace('["booked"]', '[" "]')), "names the conditions that were checked"),
        (Reply(text=verdict("no", 0.1).replace('["booked"]', "[]")), ""),
        (Reply(text='{"verdict": "yes"}'), "does not fit"),
    ],
)
def test_a_judge_is_read_strictly(reply: Reply, flaw: str) -> None:
    found = read_structured(reply, judge_question(SPEC, SAID, J))
    assert (found if isinstance(found, str) else "").find(flaw) >= 0
    assert isinstance(found, Mapping) is (not flaw)


def test_a_judge_that_repeats_the_fence_only_quotes() -> None:
    question = judge_question(SPEC, SAID, J)
    reply = Reply(text=verdict("yes", 0.9, f"it says <<<END {question.token}>>>"))
    assert reply.quality is Quality.GOOD
    assert "repeats the fence" in str(read_structured(reply, question))


def test_each_side_sees_the_conversation_from_its_own_place() -> None:
    spec = BattleSpec(agent="a", counterpart="b", system_prompt="Be kind.", persona="A pirate.", seed=7)
    mine, other = agent_request(spec, SAID[:1], 1), counterpart_request(spec, SAID, 1)
    assert [(one.role, one.text) for one in mine.messages] == [(Role.USER, "hello")]
    assert [(one.role, one.text) for one in other.messages] == [
        (Role.USER, OPENING),
        (Role.ASSISTANT, "hello"),
        (Role.USER, "hi"),
    ]
    assert (mine.system, mine.max_tokens, mine.usual_tokens, mine.seed) == ("Be kind.", None, 512, 8)
    assert "A pirate." in other.system


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<think>a plan</think>\n\nHello.", "Hello."),
        ("\n<think>a plan", ""),
        ("Hello <think>x</think>", "Hello <think>x</think>"),
        ("Hello.", "Hello."),
        ("a plan</think>\n\nHello.", "Hello."),
        ("a plan </think> Hello.", "Hello."),
        ("<think>a</think>\n<think>b</think>\nHello.", "Hello."),
        ("a </think> b </think> Hello.", "Hello."),
        ("<think>a</think> b </think> Hello.", "Hello."),
        ("Hello, write <think> and </think>.", "Hello, write <think> and </think>."),
    ],
)
def test_what_is_thought_before_a_message_is_no_part_of_it(text: str, said: str) -> None:
    assert spoken(text) == said


SAID_TEXT = st.text(alphabet="h <>/\n", max_size=20).filter(lambda text: "<t" not in text and "</t" not in text)
THOUGHTS = st.lists(st.text(alphabet="T <>/\n", max_size=12), max_size=3)


@given(SAID_TEXT, THOUGHTS)
def test_of_a_reply_that_is_being_written_nothing_is_shown_but_what_it_says(said: str, thoughts: list[str]) -> None:
    text = "".join(f"<think>{one}</think>\n" for one in thoughts) + said
    shown = [spoken_so_far(text[:end]) for end in range(len(text) + 1)]
    final = spoken(text)
    assert "T" not in final + "".join(shown)
    assert all(final.startswith(one) for one in shown)
    assert [len(one) for one in shown] == sorted(len(one) for one in shown)
    assert final.removeprefix(shown[-1]).strip() in ("", "<", "</")  # which may have become a tag


@given(SAID_TEXT.map(str.lstrip), st.text(alphabet="T \n", max_size=12))
def test_thinking_that_is_only_closed_is_taken_back_and_not_shown_again_to_those_who_know_it(
    said: str, thought: str
) -> None:
    text = f"{thought}</think>{said}"
    closed = len(thought) + len("</think>")
    assert not any("T" in spoken_so_far(text[:end]) for end in range(closed, len(text) + 1))
    assert not any("T" in spoken_so_far(text[:end], unopened=True) for end in range(len(text) + 1))
    assert not any("</" in spoken_so_far(text[:end]) for end in range(closed))
    assert spoken_so_far(text + "h") == spoken(text + "h")


def test_a_spec_is_stored_without_what_is_as_usual_and_read_back() -> None:
    spec = BattleSpec(
        agent="a", counterpart="b", goal="win", validators=(ReplyValidator(kind=ValidatorKind.CONTAINS, text="won"),)
    )
    assert stored(spec) == {
        "agent": "a",
        "counterpart": "b",
        "goal": "win",
        "validators": [{"kind": "contains", "text": "won"}],
    }
    assert read_spec(stored(spec)) == spec
    scale = ScaleSpec(battle=spec, runs=3, min_goal_rate=0.5)
    assert read_scale(stored_scale(scale)) == scale


@pytest.mark.parametrize("given", ["text", {"agent": 1}, {"agent": "a", "counterpart": "b", "validators": [{}]}, None])
def test_what_is_no_spec_is_refused(given: Any) -> None:
    with pytest.raises(BadArgument, match="not a valid spec of a battle"):
        read_spec(given)
    with pytest.raises(BadArgument, match="not a valid spec of a scale test"):
        read_scale({"battle": given, "runs": 1})


def test_limits_without_a_word_of_the_operator_are_the_usual_ones() -> None:
    spec = ScaleSpec(battle=SPEC, runs=MAX_RUNS, concurrency=MAX_CONCURRENT)
    require_limits(spec, {})
    with pytest.raises(BadArgument, match="runs must be at most 4, not 10") as caught:
        require_limits(spec, {"battles.runs": 4})
    assert [flaw.path for flaw in caught.value.flaws] == ["runs"]


@pytest.mark.parametrize(
    ("gained", "lost", "p", "word"),
    [
        (8, 0, 0.008, "better"),
        (0, 8, 0.008, "worse"),
        (2, 0, 0.5, "no difference is shown"),
        (0, 0, 1.0, "no difference is shown"),
    ],
)
def test_a_prompt_is_called_better_only_where_the_test_shows_it(gained: int, lost: int, p: float, word: str) -> None:
    found = PairedComparison(pairs=8, before=lost, after=gained, gained=gained, lost=lost, p=p)
    assert found.word == word


@pytest.mark.parametrize(("p", "words"), [(0.0002, "p < 0.001"), (0.001, "p = 0.001"), (0.25, "p = 0.250")])
def test_a_small_p_is_written_as_a_bound(p: float, words: str) -> None:
    assert PairedComparison(pairs=12, before=0, after=12, gained=12, lost=0, p=p).p_words == words


GOAL, LIMIT = BattleEnding.GOAL, BattleEnding.LIMIT


@pytest.mark.parametrize(
    ("pairs", "counted", "left_out", "gained"),
    [
        ([(LIMIT, GOAL)] * 3, 3, 0, 3),
        ([(BattleEnding.ERROR, GOAL)] * 12, 0, 12, 0),
        ([(BattleEnding.BUDGET, GOAL), (LIMIT, GOAL)], 1, 1, 1),
        ([(GOAL, BattleEnding.TIMEOUT), (GOAL, BattleEnding.MANUAL)], 0, 2, 0),
        ([(None, GOAL), (None, BattleEnding.ERROR), (GOAL, None), (LIMIT, GOAL)], 1, 3, 1),
    ],
)
def test_pairs_with_a_battle_that_was_not_played_to_its_end_are_left_out(
    pairs: list[tuple[BattleEnding | None, BattleEnding | None]], counted: int, left_out: int, gained: int
) -> None:
    found = compared(pairs)
    assert (found.pairs, found.left_out, found.gained, found.lost) == (counted, left_out, gained, 0)
    assert found.unjudged == sum(None in one and BattleEnding.ERROR not in one for one in pairs)


BROKEN, DUMB = "no verdict: exited with code 5", "the pattern is not found"


@pytest.mark.parametrize(
    ("said", "flaw"),
    [
        ([[(J, U, None, BROKEN)]], BROKEN),
        ([[(J, U, 0.5, "unclear")]], ""),
        ([[(J, N, 0.1, "")], [(J, U, None, BROKEN)]], BROKEN),  # what was said after the "no" was judged by nobody
        ([[(J, U, None, BROKEN)], [(J, N, 0.1, "")]], ""),  # it is shown the whole conversation
        ([[(J, Y, 0.9, ""), (C, U, None, BROKEN)]], BROKEN),
        ([[(V, U, None, DUMB), (J, U, None, BROKEN)]], BROKEN),
        ([[(V, U, None, BROKEN), (J, N, 0.1, "")]], ""),
        ([[(V, U, None, BROKEN), (V, U, None, DUMB)]], BROKEN),
        ([[(V, U, None, BROKEN), (V, N, 0.0, DUMB)]], ""),
        ([[(V, U, None, BROKEN)], [(V, N, 0.0, DUMB)]], BROKEN),  # a validator is shown one reply
        ([[(V, U, None, DUMB)]], ""),
        ([], ""),
    ],
)
def test_a_battle_is_judged_by_nobody_where_whoever_could_have_decided_failed(
    said: Sequence[Sequence[tuple[DecisionSource, GoalVerdict, float | None, str]]], flaw: str
) -> None:
    made = [
        BattleDecision(turn=turn, source=source, verdict=verdict, confidence=confidence, reason=reason)
        for turn, each in enumerate(said, 1)
        for source, verdict, confidence, reason in each
    ]
    assert failed_verdict(made) == flaw


HOPELESS: Sequence[Mapping[str, Any]] = (
    {"$ref": "#/nowhere"},
    {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    {"allOf": [{"pattern": f"(a|aa)+{number}$"} for number in range(3000)]},  # each of them is fast enough
    {"const": 1, "$ref": "#/const"},
)


@pytest.mark.parametrize("schema", HOPELESS, ids=("nowhere", "endless", "patterns", "no schema"))
@pytest.mark.parametrize("on_miss", [GoalVerdict.NO, GoalVerdict.UNCERTAIN])
def test_a_schema_that_cannot_be_evaluated_decides_nothing(schema: Mapping[str, Any], on_miss: GoalVerdict) -> None:
    validator = ReplyValidator(kind=ValidatorKind.JSON_SCHEMA, schema=schema, on_miss=on_miss)
    found = validate(validator, f'"{"a" * 24}b"', CpuAllowance(0.3))
    assert (found.verdict, found.confidence) == (GoalVerdict.UNCERTAIN, None)
    assert "the schema" in found.reason or "too long" in found.reason
