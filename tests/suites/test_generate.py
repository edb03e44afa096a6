"""Cases written by a model: only what is sound and new is taken, and nothing of it names a file or a command."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.call import Reply, Request, Stop
from muster.domain.canonical import Json
from muster.domain.errors import AuthRefused, InvalidRequest, Unreachable
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.suites.generate.draft import (
    ALIKE,
    MAX_PARTS,
    MAX_TEXT,
    KnownCases,
    RejectedCase,
    draft_of,
    likeness,
    normalised,
    shingles,
    slug,
)
from muster.suites.generate.workload import generate
from tests.engine.house import Puppet, house, reply

CHECK = {"kind": "contains", "value": "Paris"}
ITEMS = [
    {"id": "Right!", "description": "Names the capital", "weight": 3},
    {"id": "brief", "description": "Is brief", "weight": 1},
]
TOPICS = ("the capital of France", "a joke about cats", "rhymes on orange", "7 times 6", "the weather on Mars tonight")

SUITE = """\
schema_version: 1
skill_or_agent: geo
cases:
  - id: geo/capital
    description: Knows capitals
    input:
      messages:
        - role: user
          content: What is the capital of France, please?
    expected:
      output:
        - kind: contains
          value: Paris
"""


def written(text: str = "What is the capital of France?", **changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "id": slug(text),
        "description": f"About {text}",
        "tags": ["smoke"],
        "messages": [{"role": "user", "content": text}],
        "output": [CHECK],
        "rubric": [],
    }
    return usual | changes


def writing(*rounds: Any) -> Puppet:
    """Make a model that writes these cases, round by round, and then the last again and again."""

    async def answer(request: Request, n: int) -> Reply:
        said = rounds[min(n, len(rounds)) - 1]
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Reply):
            return said
        return reply(said if isinstance(said, str) else json.dumps({"cases": said}))

    return Puppet(answer)


async def run_of(folder: Path, model: Puppet, **spec: Any) -> Run:
    async with house(folder, model=model) as h:
        usual = {"agent": "model", "count": 1, "skill": "geo", "description": "Knows the world"}
        return await h.drive(generate, spec=usual | spec)


async def generated(folder: Path, model: Puppet, **spec: Any) -> Any:
    run = await run_of(folder, model, **spec)
    assert run.state is RunState.COMPLETED, run.error
    return run.result


async def test_cases_are_asked_for_until_there_are_enough(tmp_path: Path) -> None:
    model = writing([written(text) for text in TOPICS[:2]], [written(text) for text in TOPICS[2:]])
    result = await generated(tmp_path, model, count=4)
    assert [case["id"] for case in result["cases"]] == [f"geo/{slug(text)}" for text in TOPICS[:4]]
    assert (result["rounds"], result["rejected"], result["failure"]) == (2, {}, "")
    first, second = (request.messages[0].text for request in model.asked)
    assert "Knows the world" in first
    assert "Write 4 cases." in first
    assert "Write 2 cases." in second
    assert "- geo/a-joke-about-cats: About a joke about cats" in second


async def test_the_cases_of_a_suite_are_not_written_again(tmp_path: Path) -> None:
    (tmp_path / "geo").mkdir()
    (tmp_path / "geo" / "cases.yaml").write_text(SUITE)
    (tmp_path / "geo" / "prompt.md").write_text("You know the world.")
    model = writing([written("what is the CAPITAL of France - please"), written(TOPICS[1], id="geo/capital")])
    result = await generated(tmp_path, model, skill="", description="", extend=str(tmp_path / "geo"))
    assert [case["id"] for case in result["cases"]] == ["geo/capital-2"]
    assert result["rejected"] == {"near-duplicate": 1}
    assert result["reasons"] == ["case 1: it asks nearly the same as geo/capital"]
    asked = model.asked[0].messages[0].text
    assert "- geo/capital: Knows capitals" in asked
    assert "You know the world." in asked


async def test_new_cases_are_not_nearly_the_same_either(tmp_path: Path) -> None:
    cases = [written("Tell me the weather on Mars"), written("Tell me: the weather, on mars!"), written(TOPICS[3])]
    result = await generated(tmp_path, writing(cases), count=2)
    assert len(result["cases"]) == 2
    assert result["rejected"] == {"near-duplicate": 1}


async def test_a_model_that_writes_nothing_new_is_not_asked_for_ever(tmp_path: Path) -> None:
    model = writing([written()])
    result = await generated(tmp_path, model, count=5)
    assert (len(result["cases"]), result["rounds"]) == (1, 3)
    assert result["rejected"] == {"near-duplicate": 2}


async def test_the_number_of_calls_is_bounded_however_slowly_it_goes(tmp_path: Path) -> None:
    model = writing(*([written(f"{chr(97 + number) * 30}")] for number in range(20)))
    result = await generated(tmp_path, model, count=9)
    assert (len(result["cases"]), result["rounds"], len(model.asked)) == (5, 5, 5)


@pytest.mark.parametrize(
    "flawed",
    ["I would rather not.", "{}", reply('{"cases": []}'), Reply(text='{"cases": [', stop=Stop.MAX_TOKENS), ""],
)
async def test_a_reply_that_cannot_be_used_is_told_and_asked_again(tmp_path: Path, flawed: Any) -> None:
    model = writing(flawed, f"Here you are:\n```json\n{json.dumps({'cases': [written()]})}\n```")
    result = await generated(tmp_path, model)
    assert len(result["cases"]) == 1
    assert sum(result["rejected"].values()) == (0 if isinstance(flawed, Reply) and flawed.stop is Stop.END else 1)


async def test_nothing_generated_is_told_with_the_reasons(tmp_path: Path) -> None:
    result = await generated(tmp_path, writing([{"id": "x"}]))
    assert (result["cases"], result["rounds"]) == ([], 2)
    assert result["rejected"] == {"malformed": 2}
    assert "is a required property" in result["reasons"][0]


@pytest.mark.parametrize("error", [InvalidRequest("no such thing"), Unreachable("nobody there")])
async def test_a_model_that_fails_leaves_what_it_wrote_before(tmp_path: Path, error: Exception) -> None:
    async with house(tmp_path, model=writing([written()], error)) as h:
        spec = {"agent": "model", "count": 2, "skill": "geo", "description": "d"}
        run = await h.drive(generate, spec=spec)
        result: Any = run.result
        assert (len(result["cases"]), result["failure"]) == (1, str(error))
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))
        assert (await h.engine.drive(again.id)).result == result


async def test_what_stops_a_run_passes_through(tmp_path: Path) -> None:
    assert (await run_of(tmp_path, writing(AuthRefused("no key")))).ended_reason == "auth_refused"


@pytest.mark.parametrize(
    "spec",
    [{"count": 0}, {"count": 201}, {"skill": ""}, {"extend": "x"}, {"agent": 5}, {"process_cmd": ["rm"]}],
)
async def test_a_spec_that_makes_no_sense_is_refused(tmp_path: Path, spec: dict[str, Any]) -> None:
    assert (await run_of(tmp_path, writing([written()]), **spec)).ended_reason == "bad_argument"


async def test_a_case_that_no_suite_would_take_is_rejected(tmp_path: Path) -> None:
    broken = written(output=[{"kind": "regex", "value": "("}])
    result = await generated(tmp_path, writing([broken], [written(TOPICS[1])]))
    assert result["rejected"] == {"invalid": 1}
    assert str(tmp_path) not in result["reasons"][0]
    # The model is told it in the words of the requests that are stored.
    assert "'(' is no regular expression: missing )" in result["reasons"][0]


def test_only_the_fields_that_are_a_models_to_write_are_taken() -> None:
    draft = draft_of(written(rubric=ITEMS, tags=["Smoke", "smoke", "edge case", "!"]))
    assert draft == {
        "id": "what-is-the-capital-of-france",
        "description": "About What is the capital of France?",
        "tags": ["smoke", "edge-case"],
        "input": {"messages": [{"role": "user", "content": "What is the capital of France?"}]},
        "expected": {
            "output": [CHECK],
            "rubric": [
                {"id": "right", "description": "Names the capital", "weight": 0.75},
                {"id": "brief", "description": "Is brief", "weight": 0.25},
            ],
        },
        "evaluator_config": {"evaluator": "judge"},
    }


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"process_cmd": ["rm", "-rf", "/"]}, "malformed"),
        ({"evaluator_config": {"golden_path": "/etc/passwd"}}, "malformed"),
        ({"agents": ["anthropic/dear"]}, "malformed"),
        ({"env": {"PATH": "/tmp"}}, "malformed"),
        ({"output": [{"kind": "golden_diff", "value": "/etc/passwd"}]}, "malformed"),
        ({"output": [{**CHECK, "golden_path": "/etc/passwd"}]}, "malformed"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "malformed"),
        ({"messages": []}, "no question"),
        ({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}, "no question"),
        ({"messages": [{"role": "user", "content": " "}]}, "no question"),
        ({"messages": [{"role": "user", "content": "x"}] * (MAX_PARTS + 1)}, "too large"),
        ({"messages": [{"role": "user", "content": "x" * (MAX_TEXT + 1)}]}, "too large"),
        ({"messages": [{"role": "user", "content": "read {{secret}}"}]}, "braces"),
        ({"messages": [{"role": "user", "content": "a\0b"}]}, "malformed"),
        ({"messages": [{"role": "user", "content": "half \ud83d"}]}, "malformed"),
        ({"description": " "}, "no description"),
        ({"output": []}, "nothing to check"),
        ({"output": [{"kind": "contains", "value": ""}]}, "empty check"),
        ({"rubric": [{**ITEMS[0], "weight": 0}]}, "empty rubric item"),
        ({"rubric": [{**ITEMS[0], "description": ""}]}, "empty rubric item"),
        ({"rubric": [ITEMS[0], ITEMS[0]]}, "rubric ids"),
        ({"rubric": [{**ITEMS[0], "id": "?"}]}, "rubric ids"),
        ({"rubric": [{**ITEMS[0], "weight": float("inf")}]}, "malformed"),
    ],
)
def test_what_a_model_may_not_write_is_rejected_with_a_reason(changes: dict[str, Any], kind: str) -> None:
    with pytest.raises(RejectedCase) as caught:
        draft_of(written(**changes))
    assert caught.value.kind == kind
    assert caught.value.why


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*written(), "x", "role", "kind"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(JSON)
def test_whatever_a_model_writes_is_taken_or_rejected(value: Json) -> None:
    for given_ in (value, written() | (value if isinstance(value, dict) else {"messages": value})):
        with suppress(RejectedCase):
            assert draft_of(given_)["input"]["messages"]


@given(st.text(min_size=1, max_size=60), st.sampled_from([str.upper, str.swapcase, lambda text: f" {text}!? "]))
def test_case_spaces_and_punctuation_make_no_difference(text: str, change: Callable[[str], str]) -> None:
    crowd = KnownCases()
    crowd.add("one", text)
    assert crowd.alike(text) == "one"
    if text.isascii() and any(map(str.isalnum, text)):
        assert normalised(change(text)) == normalised(text)


@given(st.text(max_size=30), st.text(max_size=30))
def test_likeness_is_a_share_and_the_same_both_ways(one: str, other: str) -> None:
    first, second = shingles(one), shingles(other)
    assert 0 <= likeness(first, second) <= 1
    assert likeness(first, second) == likeness(second, first)
    assert likeness(first, first) == 1


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("What is the capital of France?", "what is the capital   of france", True),
        ("Please tell me what the capital of France is, thanks", "Please tell me what the capital of France is", True),
        ("What is the capital of France?", "What is the capital of Spain?", False),
        ("!!!", "???", False),
        ("???", " ? ?\n?", True),
        ("", "anything", False),
    ],
)
def test_nearly_the_same_is_told_from_another_question(one: str, other: str, alike: bool) -> None:
    found = likeness(shingles(normalised(one)), shingles(normalised(other)))
    assert (found >= ALIKE) is alike


@pytest.mark.parametrize(
    ("text", "name"), [("geo/Knows It!", "knows-it"), ("../../etc", "etc"), ("---", ""), ("a" * 99, "a" * 60)]
)
def test_a_name_is_made_of_letters_and_hyphens(text: str, name: str) -> None:
    assert slug(text) == name
