"""Proposals, evaluations and the envelopes of providers, as they are read and kept."""

from typing import Any

import pytest

from muster.agents.program.exec_protocol import (
    candidates_of,
    coerced_evaluations,
    coerced_proposal,
    decode,
    is_envelope,
    read_envelope,
)
from muster.domain.call import Usage
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput, Paid
from tests.agents.program.stage import PROPOSAL, context, spelled


def evaluated(*items: Any, **rest: Json) -> Any:
    return decode(spelled({"evaluations": list(items), **rest}).encode(), context("evaluate", "A", "B")).data


def proposed(value: Json) -> Any:
    return decode(spelled(value).encode(), context()).data


def test_a_proposal_keeps_what_else_it_says() -> None:
    assert proposed({**PROPOSAL, "confidence": 0.9}) == {**PROPOSAL, "confidence": 0.9}


@pytest.mark.parametrize(
    "value",
    [{"content": "x"}, {"thought_process": "x"}, {"thought_process": 1, "content": "x"}, {**PROPOSAL, "content": None}],
)
def test_a_proposal_needs_both_texts(value: Json) -> None:
    with pytest.raises(BadOutput, match="the output is not a valid proposal"):
        proposed(value)


@pytest.mark.parametrize("name", ["target_id", "agent_id", "candidate_id"])
def test_a_target_is_kept_under_one_name(name: str) -> None:
    assert evaluated({name: "A", "score": 1, "stance": "for"}) == {
        "evaluations": [{"target_id": "A", "score": 1, "stance": "for"}]
    }


def test_the_first_name_of_a_target_wins_and_other_keys_are_kept() -> None:
    item = {"agent_id": "me", "score": 0.5, "target_id": "A", "justification": None, "claim_assessments": [{"id": 1}]}
    assert evaluated(item, round=2) == {
        "evaluations": [{"target_id": "A", "agent_id": "me", "score": 0.5, "claim_assessments": [{"id": 1}]}],
        "round": 2,
    }


def test_no_evaluations_are_refused_and_who_abstains_says_so() -> None:
    with pytest.raises(BadOutput, match='"evaluations" is empty; who abstains answers'):
        evaluated()
    with pytest.raises(BadOutput, match="skipped"):
        evaluated({"target_id": "A", "score": 1}, skipped=True)
    abstention = {"skipped": True, "reason": "not my field", "cost_usd": 0.01}
    found = decode(spelled(abstention).encode(), context("evaluate", "A", "B"))
    assert (found.data, found.cost) == ({**abstention, "evaluations": []}, 10_000)
    wrapped = {"type": "result", "result": spelled({"skipped": True})}
    assert decode(spelled(wrapped).encode(), context("evaluate", "A")).data == {"skipped": True, "evaluations": []}
    assert decode(spelled({"skipped": True}).encode(), context()).text == ""
    partly = evaluated({"target_id": "A", "skipped": True}, {"target_id": "B", "score": 0})
    assert partly == {"evaluations": [{"target_id": "A", "skipped": True}, {"target_id": "B", "score": 0}]}


def test_a_line_of_a_log_is_no_abstention() -> None:
    said = {"evaluations": [{"target_id": "A", "score": 1}]}
    output = f"{spelled(said)}\n{spelled({'step': 'cache', 'skipped': True})}\n{spelled({'skipped': False})}"
    assert decode(output.encode(), context("evaluate", "A")).data == said


def test_without_candidates_in_the_context_any_target_will_do() -> None:
    said = {"evaluations": [{"target_id": "A", "score": 1}]}
    assert decode(spelled(said).encode(), context("evaluate")).data == said
    with pytest.raises(BadOutput, match="names no candidates"):
        decode(spelled({"type": "result", "result": "fine"}).encode(), context("evaluate"))


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"score": 1}, "names no target"),
        ({"target_id": 7, "score": 1}, "names no target"),
        ({"target_id": "", "score": 1}, "names no target"),
        ({"target_id": "A"}, "has no score"),
        ({"target_id": "A", "score": True}, "has no score"),
        ({"target_id": "A", "score": "0.8"}, "has no score"),
        ({"target_id": "A", "score": float("nan")}, "has no score"),
        ({"target_id": "A", "score": float("inf")}, "has no score"),
        ({"target_id": "A", "score": 1, "justification": 3}, "justification"),
    ],
)
def test_an_evaluation_that_is_none_is_refused_with_its_place(item: Json, why: str) -> None:
    with pytest.raises(BadOutput, match=rf"the output is not a valid list of evaluations: evaluations\[1\].*{why}"):
        evaluated({"target_id": "A", "score": 1}, item)


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"target_id": "B", "score": 1.0001}, "it has the score 1.0001: it must be from 0 to 1"),
        ({"target_id": "B", "score": -1}, "it has the score -1: it must be from 0 to 1"),
        ({"target_id": "B", "score": 10**400}, "it has the score 1000"),
        ({"target_id": "B", "skipped": True, "score": 7}, "it has the score 7"),
        ({"target_id": "C", "score": 1}, "it is an unknown target; the candidates are A, B"),
        ({"target_id": "me", "score": 1}, "agents do not weigh their own proposals"),
    ],
)
def test_an_evaluation_that_cannot_count_is_left_out_by_name_and_the_rest_is_kept(
    item: dict[str, Any], why: str
) -> None:
    good = {"target_id": "A", "score": 1}
    said = {"evaluations": [good, item], "rejected": "by me"}
    data = decode(spelled(said).encode(), {**context("evaluate", "A", "B"), "agent_id": "me"}).data
    assert data["evaluations"] == [good]
    assert [one["target_id"] for one in data["rejected"]] == [item["target_id"]]
    assert data["rejected"][0]["reason"].startswith(why)
    with pytest.raises(BadOutput, match="no evaluation is left that counts: "):
        evaluated(item)


def test_a_target_that_is_there_twice_is_left_out_altogether() -> None:
    twice = [{"target_id": "A", "score": 1}, {"candidate_id": "A", "score": 0}]
    found = evaluated(*twice, {"target_id": "B", "score": 0.5})
    assert found == {
        "evaluations": [{"target_id": "B", "score": 0.5}],
        "rejected": [{"target_id": "A", "reason": "it is evaluated 2 times"}],
    }
    with pytest.raises(BadOutput, match="'A': it is evaluated 2 times"):
        evaluated(*twice)


def test_a_program_may_score_on_the_signed_scale_that_its_context_declares() -> None:
    item = {"target_id": "A", "score": -0.5}
    said = spelled({"evaluations": [item]}).encode()
    asked = context("evaluate", "A", "B")
    assert decode(said, {**asked, "score_range": [-1, 1]}).data == {"evaluations": [item]}
    for other in ([0, 1], [-5, 5], "-1..1", None):
        with pytest.raises(BadOutput, match="it must be from 0 to 1"):
            decode(said, {**asked, "score_range": other})
    worse = spelled({"evaluations": [{**item, "score": -1.5}]}).encode()
    with pytest.raises(BadOutput, match="it must be from -1 to 1"):
        decode(worse, {**asked, "score_range": [-1, 1]})


def test_a_bad_last_word_is_not_replaced_by_a_draft_before_it() -> None:
    draft, last = ({"evaluations": [{"target_id": "A", "score": score}]} for score in (0.5, "high"))
    with pytest.raises(BadOutput, match="has no score"):
        decode(f"{spelled(draft)}\n{spelled(last)}".encode(), context("evaluate", "A"))


def test_data_that_no_store_gives_back_is_refused() -> None:
    with pytest.raises(BadOutput, match="64 bits"):
        proposed({**PROPOSAL, "more": 2**64})


def envelope(**fields: Json) -> dict[str, Json]:
    return {"type": "result", "subtype": "success", **fields}


def test_the_text_of_an_envelope_is_its_result() -> None:
    found = read_envelope(envelope(is_error=False, duration_ms=5740, result="Hello! I'm Claude."))
    assert (found.result, found.failed) == ("Hello! I'm Claude.", False)


def test_an_envelope_says_cost_usage_and_session() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 6}
    found = read_envelope(envelope(result="x", total_cost_usd=0.0123, usage=usage, session_id="s", num_turns=2))
    assert (found.cost, found.session, found.turns) == (12_300, "s", 2)
    assert found.usage == Usage(input=3, output=4, cache_read=5, cache_write=6)


def test_what_an_envelope_says_in_another_way_is_taken_as_not_said() -> None:
    found = read_envelope(envelope(result=1, total_cost_usd="free", usage=[], session_id=7, num_turns=True, errors=[1]))
    assert (found.cost, found.session, found.turns, found.usage) == (None, "", 0, Usage())


def test_other_objects_are_no_envelopes() -> None:
    assert not is_envelope(PROPOSAL)
    assert not is_envelope({"type": "result", "value": 3})
    assert not is_envelope({"type": "assistant", "result": "x"})


def test_an_object_in_an_envelope_is_the_answer() -> None:
    assert proposed(envelope(result=PROPOSAL)) == PROPOSAL


@pytest.mark.parametrize("text", [spelled(PROPOSAL), f"Here:\n```json\n{spelled(PROPOSAL)}\n```\nDone."])
def test_json_in_the_text_of_an_envelope_is_the_answer(text: str) -> None:
    assert proposed(envelope(result=text)) == PROPOSAL


def test_text_in_an_envelope_becomes_a_proposal() -> None:
    expected = {"thought_process": "(generated by exec provider)", "content": "My answer here"}
    assert coerced_proposal("  My answer here  ") == expected
    assert proposed(envelope(is_error=False, result="  My answer here  ")) == expected


def test_text_in_an_envelope_becomes_neutral_evaluations_that_are_marked() -> None:
    marked = {"score": 0.5, "justification": "Good work", "coerced": True}
    expected = {"evaluations": [{"target_id": name, **marked} for name in ("A", "B")], "coerced": True}
    assert coerced_evaluations(" Good work ", ["A", "B"], 0) == expected
    output = spelled(envelope(result=" Good work "))
    assert decode(output.encode(), context("evaluate", "A", "B")).data == expected


@pytest.mark.parametrize("candidates", [None, "A", {"id": "A"}, [], [1, {"id": 2}, {}]])
def test_only_named_candidates_are_evaluated(candidates: Json) -> None:
    assert candidates_of({"candidates": candidates}) == []
    assert candidates_of({"candidates": [{"id": "A"}, 1, {"id": "B"}]}) == ["A", "B"]


@pytest.mark.parametrize("result", [None, 7, True, [PROPOSAL], {"content": "x"}, {}])
def test_only_text_in_an_envelope_is_coerced(result: Json) -> None:
    with pytest.raises(BadOutput, match="the output is not a valid proposal: the result in the envelope"):
        proposed(envelope(result=result))


def test_evaluations_in_an_envelope_are_checked_like_others_and_their_cost_counts() -> None:
    output = spelled(envelope(result='{"evaluations": [{"target_id": "A"}]}', total_cost_usd=0.5)).encode()
    with pytest.raises(BadOutput, match="has no score") as caught:
        decode(output, context("evaluate", "A"))
    assert (caught.value.paid, caught.value.cost) == (Paid.YES, 500_000)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"result": "Error: tool failed"}, "Error: tool failed"),
        ({"errors": ["no", "credit"]}, "no; credit"),
        ({"subtype": "error_max_turns"}, "error_max_turns"),
        ({"subtype": None}, "no reason"),
    ],
)
def test_an_envelope_of_an_error_is_that_error_with_its_cost(fields: Any, words: str) -> None:
    with pytest.raises(BadOutput, match=words) as caught:
        proposed({"type": "result", "is_error": True, "total_cost_usd": 0.25, **fields})
    assert (caught.value.paid, caught.value.cost) == (Paid.YES, 250_000)


def test_an_error_without_a_cost_leaves_open_what_it_cost() -> None:
    with pytest.raises(BadOutput) as caught:
        proposed({"type": "result", "is_error": True, "result": "no"})
    assert caught.value.paid is Paid.NO
