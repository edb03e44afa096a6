"""Calls, runs, scripts and errors as values."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from muster.domain.agent import Profile
from muster.domain.call import (
    Message,
    Quality,
    Reply,
    Request,
    Role,
    Stop,
    Tool,
    ToolCall,
    ask,
    identify,
    request_json,
)
from muster.domain.canonical import canonical, digest
from muster.domain.errors import BadOutput, Conflict, MusterError, RunFailed, exit_code_of
from muster.domain.ids import RunId, new_run_id
from muster.domain.run import TERMINAL, RunState, move
from muster.domain.script import Line, Rule, Script, count_tokens
from muster.engine.schemas import AskedData

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)

# Control, format, surrogates, unassigned, private, separators, selectors, marks of three kinds, and blanks that are
# letters or symbols.
UNSEEN = (
    0x00, 0x200B, 0xD800, 0xDFFF, 0x0378, 0xFFFF, 0xE000, 0xA0, 0x3000, 0x2028, 0x2029, 0xFE0F, 0xE0100,
    0x0301, 0x0903, 0x20DD, 0x3164, 0x2800, 0xFFFD, 0x13441, 0x1D159,
)  # fmt: skip


@given(JSON)
def test_the_canonical_form_is_json_and_stable(value: object) -> None:
    assert json.loads(canonical(value)) == value
    assert canonical(json.loads(canonical(value))) == canonical(value)


@given(st.dictionaries(st.text(max_size=4), st.integers(), max_size=6))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    assert digest(value) == digest(dict(reversed(value.items())))


@pytest.mark.parametrize(
    "change",
    [
        {"system": "be terse"},
        {"max_tokens": 5},
        {"temperature": 0.0},
        {"top_p": 0.5},
        {"seed": 0},
        {"stop": ("x",)},
        {"cache": "1h"},
        {"tools": (Tool(name="t"),)},
        {"environment": {"MODE": "strict"}},
        {"messages": (Message(role=Role.ASSISTANT, text="hi"),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_is_asked_is_part_of_its_identity(change: dict[str, object]) -> None:
    request = ask("hi")
    assert identify("a", replace(request, **change)).digest != identify("a", request).digest  # type: ignore[arg-type]


def test_who_is_asked_is_part_of_the_identity_and_what_is_volatile_is_not() -> None:
    request = ask("hi")
    assert identify("a", request).digest != identify("b", request).digest
    assert identify("a", replace(request, volatile={"x": 1})).digest == identify("a", request).digest


def test_a_request_is_spelled_with_nothing_that_was_left_out() -> None:
    assert request_json(ask("hi")) == {"messages": [{"role": "user", "text": "hi"}]}
    assert request_json(replace(ask("hi"), environment={})) == request_json(ask("hi"))


def test_an_agent_fills_only_what_is_left_open() -> None:
    profile = Profile(name="a", limiter="a", system="terse", max_tokens=10, temperature=0.5, seed=3)
    assert profile.complete(ask("hi")) == Request(
        messages=ask("hi").messages, system="terse", max_tokens=10, temperature=0.5, seed=3
    )
    own = Request(
        messages=ask("hi").messages, system="mine", max_tokens=1, temperature=0.0, seed=0, environment={"A": "b"}
    )
    assert profile.complete(own) == own


@pytest.mark.parametrize(
    ("reply", "quality"),
    [
        (Reply(text="hi", stop=Stop.END), Quality.GOOD),
        (Reply(text="", stop=Stop.END), Quality.EMPTY),
        (Reply(text=" \n", stop=Stop.SEQUENCE), Quality.EMPTY),
        (Reply(text="\x1b[0m\x1b]0;title\x07", stop=Stop.END), Quality.EMPTY),
        (Reply(text="\x1b[1mhi\x1b[0m", stop=Stop.END), Quality.GOOD),
        (Reply(text="hi", stop=Stop.MAX_TOKENS), Quality.CUT),
        (Reply(text="", stop=Stop.MAX_TOKENS), Quality.CUT),
        (Reply(text="no", stop=Stop.REFUSED), Quality.REFUSED),
        (Reply(text="", stop=Stop.TOOL_USE, tool_calls=(ToolCall(id="1", name="t"),)), Quality.GOOD),
        (Reply(text="hi", stop=Stop.OTHER), Quality.UNFINISHED),
        (Reply(text="", stop=Stop.OTHER), Quality.UNFINISHED),
        (Reply(text="\u200b", stop=Stop.END), Quality.EMPTY),
        (Reply(text=" \u200d\ufeff\u2800\u3164\ufe0f\u00ad\u3000\x00", stop=Stop.END), Quality.EMPTY),
        (Reply(text="\u200b.", stop=Stop.END), Quality.GOOD),
        (Reply(text="\ud800", stop=Stop.END), Quality.EMPTY),
        (Reply(text="e\u0301", stop=Stop.END), Quality.GOOD),
        (Reply(text="\u2764\ufe0f", stop=Stop.END), Quality.GOOD),
        (Reply(text="Let me look.", stop=Stop.TOOL_USE), Quality.UNFINISHED),
        (Reply(text="", stop=Stop.TOOL_USE), Quality.UNFINISHED),
    ],
)
def test_a_reply_that_was_cut_refused_or_empty_is_told_from_a_good_one(reply: Reply, quality: Quality) -> None:
    assert reply.quality is quality


@pytest.mark.parametrize("point", UNSEEN, ids="U+{:04X}".format)
def test_characters_that_show_nothing_are_an_empty_answer(point: int) -> None:
    assert Reply(text=chr(point) * 3).quality is Quality.EMPTY
    assert Reply(text=f"a{chr(point)}").quality is Quality.GOOD


def test_calls_of_tools_that_nobody_declared_are_no_answer() -> None:
    calls = (ToolCall(id="1", name="ghost"), ToolCall(id="2", name="look"))
    reply = Reply(text="\u200b", stop=Stop.TOOL_USE, tool_calls=calls)
    assert reply.quality_given({"look"}) is Quality.GOOD
    assert reply.quality_given({"other"}) is Quality.EMPTY
    assert replace(reply, text="It is 5.").quality_given(()) is Quality.GOOD
    assert replace(reply, stop=Stop.OTHER).quality_given({"look"}) is Quality.UNFINISHED


def test_data_that_waits_for_tools_nobody_called_is_bad_output() -> None:
    waiting = Reply(text="Let me look.", stop=Stop.TOOL_USE)
    called = replace(waiting, tool_calls=(ToolCall(id="1", name="look"),))
    asked = AskedData(RunId("1"), "label", "desk", {"type": "object"})
    assert asked.fitting(called) == called
    with pytest.raises(BadOutput, match="made none"):
        asked.fitting(waiting)


class RunLife(RuleBasedStateMachine):
    """Whatever is tried, a run never leaves a terminal state."""

    def __init__(self) -> None:
        super().__init__()
        self.state = RunState.QUEUED
        self.ended: RunState | None = None

    @rule(to=st.sampled_from(RunState))
    def try_to_move(self, to: RunState) -> None:
        try:
            self.state = move(self.state, to)
        except Conflict:
            return
        if self.state in TERMINAL and self.ended is None:
            self.ended = self.state

    @invariant()
    def terminal_states_are_final(self) -> None:
        assert self.ended is None or self.state is self.ended


TestRunLife = RunLife.TestCase


def test_every_state_can_be_reached() -> None:
    reached = {RunState.QUEUED}
    while True:
        more = {to for state in reached for to in RunState if _moves(state, to)}
        if more <= reached:
            break
        reached |= more
    assert reached == set(RunState)


def _moves(state: RunState, to: RunState) -> bool:
    try:
        move(state, to)
    except Conflict:
        return False
    return True


def test_run_ids_sort_by_time_and_are_safe_in_paths() -> None:
    import random

    dice = random.Random(1)
    ids = [new_run_id(1_800_000_000 + i, dice) for i in range(1000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 1000
    assert all(len(each) == 16 and each.isalnum() and each == each.lower() for each in ids)


def test_every_error_has_a_code_of_its_own_and_a_known_exit_code() -> None:
    kinds: list[type[MusterError]] = [MusterError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    ours = {kind for kind in kinds if kind.__module__ == "muster.domain.errors" and "code" in vars(kind)}
    assert len({kind.code for kind in ours}) == len(ours)
    assert {kind.exit_code for kind in ours} <= {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("reason", "code"), [("budget", 1), ("auth_refused", 3), ("interrupted", 4), ("timeout", 1), ("what?", 1)]
)
def test_a_run_that_failed_exits_as_its_cause_would(reason: str, code: int) -> None:
    assert exit_code_of(RunFailed("r", "failed", reason, {"message": "m"})) == code


USER = (Message(role=Role.USER, text="please add 2 and 3"),)


def test_the_first_rule_that_matches_speaks() -> None:
    script = Script(
        rules=(
            Rule(line=Line(text="other model"), model="gpt-*"),
            Rule(line=Line(text="second turn"), turn=2),
            Rule(line=Line(text="sum of: {text}"), text=r"add \d"),
            Rule(line=Line(text="never")),
        )
    )
    assert script.answer("claude", USER, 100).text == "sum of: please add 2 and 3"
    later = (*USER, Message(role=Role.ASSISTANT, text="5"), Message(role=Role.USER, text="add 4"))
    assert script.answer("claude", later, 100).text == "second turn"
    assert script.answer("gpt-5", USER, 100).text == "other model"


@given(st.text(max_size=200), st.integers(1, 30))
def test_an_answer_never_has_more_tokens_than_allowed(text: str, most: int) -> None:
    line = Script().answer("m", (Message(role=Role.USER, text=text),), most)
    assert count_tokens(line.text) <= most
    assert text.startswith(line.text)
    assert (line.stop is Stop.MAX_TOKENS) == (line.text != text)


def test_a_request_with_half_a_character_is_kept_as_json_that_can_be_read_back() -> None:
    request = ask("half \ud83d of it")
    kept = identify("a", request).text
    kept.encode("utf-8")
    assert json.loads(kept) == request_json(request)
