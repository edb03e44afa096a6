"""Answers are read strictly: a value, an abstention, or the reason why they cannot be read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.program.exec_protocol import decode
from muster.councils.members.answers import (
    EVALUATION_SCHEMA,
    MAX_CLAIMS,
    PROPOSAL_SCHEMA,
    UnreadableAnswer,
    read_evaluation,
    read_proposal,
    settled,
)
from muster.councils.order import ScoreScale
from muster.councils.rules.anonymity import CandidateLabels
from muster.councils.rules.values import (
    MAX_SCRATCHPAD,
    AbstentionCause,
    ClaimAssessment,
    ClaimStance,
    CouncilAbstention,
    CouncilPhase,
    Evaluation,
    Proposal,
    Vote,
)
from muster.domain.call import Reply, Stop, Usage
from muster.domain.canonical import Json, canonical
from muster.text.schemas.json_schema import schema_flaw
from tests.councils.cases import reply

LABELS = CandidateLabels(viewer="ada", shown=(("k7q", "bob"), ("z3f", "cyd")))
PROPOSALS = (Proposal(agent="bob", text="b", claims=("one", "two")), Proposal(agent="cyd", text="c"))


def evaluated(answer: Reply, scale: ScoreScale = ScoreScale.UNIT) -> Evaluation | CouncilAbstention | UnreadableAnswer:
    return read_evaluation(answer, LABELS, PROPOSALS, scale)


def from_program(value: Any, phase: str, **context: Json) -> Reply:
    """The reply of a program that writes this, read by the exec protocol."""
    candidates = [{"id": label, "proposal": "…"} for label in LABELS.labels]
    told = {"phase": phase, "candidates": candidates, **context}
    answer = decode(canonical(value), told)
    return Reply(text=answer.text, data=answer.data)


def unreadable(found: object) -> str:
    assert isinstance(found, UnreadableAnswer)
    return found.reason


@pytest.mark.parametrize("schema", [PROPOSAL_SCHEMA, EVALUATION_SCHEMA])
def test_the_schemas_are_schemas(schema: dict[str, Json]) -> None:
    assert schema_flaw(schema) is None


def test_a_proposal_of_a_model_is_read_with_claims_notes_and_tokens() -> None:
    said = {"text": "Use {braces}.", "claims": ["a", "b"], "final_scratchpad": "later"}
    answer = Reply(text=canonical(said).decode(), usage=Usage(output=42))
    expected = Proposal(agent="ada", text="Use {braces}.", claims=("a", "b"), scratchpad="later", tokens=42)
    assert read_proposal(answer, "ada") == expected
    fenced = Reply(text=f"```json\n{answer.text}\n```", usage=Usage(output=42))
    assert read_proposal(fenced, "ada") == expected


def test_a_proposal_of_a_program_is_read_from_the_exec_protocol() -> None:
    said = {"thought_process": "hm", "content": 'Say {"text": "x"}.', "claims": ["a"], "final_scratchpad": "n"}
    expected = Proposal(agent="ada", text='Say {"text": "x"}.', claims=("a",), scratchpad="n")
    assert read_proposal(from_program(said, "propose"), "ada") == expected
    of_its_own = {"thought_process": "", "content": "x", "claims": [{"id": 1}]}
    assert read_proposal(from_program(of_its_own, "propose"), "ada") == Proposal(agent="ada", text="x")


@pytest.mark.parametrize("is_program", [True, False])
def test_either_kind_may_abstain_in_either_phase(is_program: bool) -> None:
    said = {"skipped": True, "reason": "not my field"}
    for phase in CouncilPhase:
        answer = from_program(said, str(phase)) if is_program else reply(said)
        found = read_proposal(answer, "ada") if phase is CouncilPhase.PROPOSE else evaluated(answer)
        assert found == CouncilAbstention(
            agent="ada", phase=phase, cause=AbstentionCause.SKIPPED, reason="not my field"
        )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply("I think so."), "not one JSON object"),
        (reply('Sure: {"text": "x"}'), "not one JSON object"),
        (reply({"text": "x", "winner": "me"}), "does not fit"),
        (reply({"text": 1}), "does not fit"),
        (reply({}), "it has no text"),
        (reply({"text": " \u200b "}), "it has no text"),
        (reply({"text": "x", "skipped": True}), "has an answer all the same"),
        (reply({"text": "x", "claims": ["c"] * (MAX_CLAIMS + 1)}), f"has {MAX_CLAIMS + 1} claims"),
        (reply({"text": "x", "final_scratchpad": "é" * (MAX_SCRATCHPAD // 2 + 1)}), "32,770 bytes; at most 32,768"),
        (reply({"text": "x"}, stop=Stop.MAX_TOKENS), "cut off"),
        (reply("", stop=Stop.REFUSED), "refusal"),
        (reply("", data={"thought_process": "", "content": ""}), "it has no text"),
        (reply("x", data={"thought_process": "", "content": "x", "final_scratchpad": 7}), "is not a string"),
    ],
)
def test_a_proposal_that_cannot_be_read_is_a_reason(answer: Reply, why: str) -> None:
    assert why in unreadable(read_proposal(answer, "ada"))


def test_an_evaluation_of_a_model_is_mapped_back_to_agents_and_claims() -> None:
    claims = [{"claim": 2, "stance": "contested", "reason": "no source"}]
    said = {
        "evaluations": [
            {"candidate": "z3f", "weight": -20, "critique": "vague"},
            {"candidate": " k7q ", "weight": 60.5, "critique": "good", "claims": claims},
        ]
    }
    contested = ClaimAssessment(claim="two", stance=ClaimStance.CONTESTED, reason="no source")
    assert evaluated(reply(said)) == Evaluation(
        agent="ada",
        votes=(
            Vote(target="cyd", weight=-20, critique="vague"),
            Vote(target="bob", weight=60.5, critique="good", claims=(contested,)),
        ),
    )


def test_an_evaluation_of_a_program_is_mapped_to_weights_by_its_scale() -> None:
    assessments = [
        {"claim": 1, "stance": "verified", "reason": "seen"},
        {"claim": " my words ", "stance": "contested"},
        {"claim": 9, "stance": "verified"},
        {"claim": True, "stance": "verified"},
        {"claim": 1, "stance": "unsure"},
        "x",
    ]
    items = [
        {"agent_id": "k7q", "score": 0.75, "justification": "good", "claim_assessments": assessments},
        {"target_id": "z3f", "skipped": True, "justification": "no idea"},
    ]
    found = evaluated(from_program({"evaluations": items}, "evaluate"))
    assert found == Evaluation(
        agent="ada",
        votes=(
            Vote(
                target="bob",
                weight=50,
                critique="good",
                claims=(
                    ClaimAssessment(claim="one", stance=ClaimStance.VERIFIED, reason="seen"),
                    ClaimAssessment(claim="my words", stance=ClaimStance.CONTESTED),
                ),
            ),
            Vote(target="cyd", weight=None, critique="no idea"),
        ),
    )
    signed = {"evaluations": [{"target_id": "k7q", "score": -0.5}]}
    answer = from_program(signed, "evaluate", score_range=[-1, 1])
    assert evaluated(answer, ScoreScale.SIGNED) == Evaluation(agent="ada", votes=(Vote(target="bob", weight=-50),))
    assert "'k7q' has the score -0.5: it must be from 0 to 1" in unreadable(evaluated(answer))


GOOD = {"candidate": "z3f", "weight": 40, "critique": "fine"}


@pytest.mark.parametrize(
    ("items", "target", "why"),
    [
        ([{"candidate": "ada", "weight": 100}], "ada", "agents do not weigh their own proposals"),
        ([{"candidate": "eve", "weight": 100}], "eve", "there is no such proposal"),
        ([{"candidate": "k7q", "weight": 1}, {"candidate": "k7q", "weight": 900}], "bob", "weighed more than once"),
        ([{"candidate": "k7q", "weight": 101}], "bob", "it has the weight 101: it must be from -100 to 100"),
        ([{"candidate": "k7q"}], "bob", "it has no weight"),
    ],
)
def test_what_is_not_repaired_leaves_out_single_votes_by_name(items: list[Any], target: str, why: str) -> None:
    found = evaluated(reply({"evaluations": [*items, GOOD]}))
    assert unreadable(found)  # a model may repair it first
    rest = settled(found)
    assert isinstance(rest, Evaluation)
    assert rest.votes == (Vote(target="cyd", weight=40, critique="fine"),)
    ((named, reason),) = [(one.target, one.reason) for one in rest.rejected]
    assert (named, why in reason) == (target, True)
    nothing = evaluated(reply({"evaluations": items}))
    assert settled(nothing) == nothing


def test_a_program_is_not_asked_to_repair_single_votes() -> None:
    items = [
        {"target_id": "k7q", "score": 1.5},
        {"target_id": "ada", "score": 1},
        {"target_id": "eve", "score": 1},
        {"target_id": "z3f", "score": 0.75},
    ]
    found = evaluated(from_program({"evaluations": items}, "evaluate", agent_id="ada"))
    assert isinstance(found, Evaluation)
    assert found.votes == (Vote(target="cyd", weight=50),)
    assert [one.target for one in found.rejected] == ["bob", "ada", "eve"]


@pytest.mark.parametrize("extra", [{"winner": "me"}, {"thought_process": "", "text": "y"}])
def test_structured_output_of_a_model_is_held_against_the_schema_whatever_its_keys(extra: dict[str, Json]) -> None:
    said = {"content": "x", **extra}
    assert "does not fit" in unreadable(read_proposal(reply(said, data=said), "ada"))
    assert "does not fit" in unreadable(read_proposal(reply("see data", data=said), "ada"))


def test_evaluations_that_were_made_of_a_text_are_marked() -> None:
    envelope = {"type": "result", "result": "I like all of them.", "is_error": False}
    found = evaluated(from_program(envelope, "evaluate"))
    assert isinstance(found, Evaluation)
    assert found.coerced
    assert {vote.weight for vote in found.votes} == {0}


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([], "it has no evaluations"),
        ([{"candidate": "bob", "weight": 1}], "there is no candidate 'bob'; the candidates are k7q, z3f"),
        ([{"candidate": "k7q", "weight": 1}, {"candidate": "k7q", "weight": 2}], "'k7q' is evaluated 2 times"),
        ([{"candidate": "k7q", "weight": 100.5}], "'k7q' has the weight 100.5: it must be from -100 to 100"),
        ([{"candidate": "k7q"}], "'k7q' has no weight"),
        ([{"candidate": "k7q", "weight": "60"}], "does not fit"),
        ([{"candidate": "k7q", "weight": True}], "does not fit"),
        ([{"weight": 60}], "does not fit"),
        (
            [{"candidate": "z3f", "weight": 1, "claims": [{"claim": 1, "stance": "verified", "reason": ""}]}],
            "'z3f' has no claim with the number 1",
        ),
        (
            [{"candidate": "k7q", "weight": 1, "claims": [{"claim": 0, "stance": "verified", "reason": ""}]}],
            "'k7q' has no claim with the number 0",
        ),
    ],
)
def test_an_evaluation_that_cannot_be_read_is_a_reason_that_names_the_target(items: list[Json], why: str) -> None:
    assert why in unreadable(evaluated(reply({"evaluations": items})))


def test_an_abstention_with_evaluations_is_neither() -> None:
    said = {"skipped": True, "evaluations": [{"candidate": "k7q", "weight": 1}]}
    assert "all the same" in unreadable(evaluated(reply(said)))


OURS = (*PROPOSAL_SCHEMA["properties"], *EVALUATION_SCHEMA["properties"], "candidate", "weight", "critique", "stance")
OF_PROGRAMS = ("content", "thought_process", "target_id", "score", "justification", "coerced", "claim_assessments")
KEYS = st.sampled_from(OURS + OF_PROGRAMS)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["k7q", "z3f", "ada", "contested", "verified", "", "\ud800"]),
    st.text(max_size=5),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=12,
)
ITEMS = st.lists(st.dictionaries(KEYS, ANYTHING, max_size=6), max_size=3)
ANSWERS = st.one_of(ANYTHING, st.fixed_dictionaries({"evaluations": ITEMS}), st.dictionaries(KEYS, ANYTHING))
READ = (Proposal, Evaluation, CouncilAbstention, UnreadableAnswer)


@given(ANSWERS, st.booleans(), st.sampled_from(ScoreScale))
def test_the_readers_raise_nothing_whatever_they_read(value: Any, as_data: bool, scale: ScoreScale) -> None:
    answer = reply("words", data=value) if as_data else reply(value)
    assert isinstance(read_proposal(answer, "ada"), READ)
    assert isinstance(evaluated(answer, scale), READ)
