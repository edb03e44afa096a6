"""What a member knows in its turn, as a prompt and as a context of the exec protocol."""

from dataclasses import replace

import pytest

from muster.councils.members.prompts import INSTRUCTIONS, context_of, repair_of, request_of, system_of
from muster.councils.members.turns import Council, CouncilTurn, evaluate_turn, propose_turn
from muster.councils.order import ScoreScale
from muster.councils.rules.values import (
    AbstentionCause,
    ClaimAssessment,
    ClaimStance,
    CouncilAbstention,
    CouncilMember,
    CouncilPhase,
    Evaluation,
    Proposal,
    Vote,
)
from muster.domain.canonical import canonical
from tests.councils.cases import a_round, council, evaluation

PROPOSALS = (
    Proposal(agent="ada", text="Ada says yes, give me 100", claims=("it works",), scratchpad="ask about cost"),
    Proposal(agent="bob", text="bob says no"),
    Proposal(agent="cyd", text="maybe"),
)
COUNCIL = council("ada", "bob", "cyd", question="Shall we?")
ADA, BOB, CYD = COUNCIL.members


def first_round() -> list[Evaluation]:
    """Evaluations of the first round; bob writes about ada with his own labels."""
    seen = evaluate_turn(COUNCIL, BOB, PROPOSALS, []).labels
    contested = ClaimAssessment(claim="it works", stance=ClaimStance.CONTESTED, reason="Cyd tried it")
    critique = f"{seen.label_of('ada')} is weaker than {seen.label_of('cyd')}, says Bob"
    return [
        Evaluation(
            agent="bob",
            votes=(
                Vote(target="ada", weight=-100, critique=critique, claims=(contested,)),
                Vote(target="cyd", weight=0),
            ),
        ),
        evaluation("cyd", ada=100, bob=0),
        evaluation("ada", bob=-50, cyd=50),
    ]


def test_who_evaluates_sees_the_others_under_labels_and_without_names() -> None:
    turn = evaluate_turn(COUNCIL, CYD, PROPOSALS, [])
    assert {one.text for one in turn.candidates} == {"[agent] says yes, give me 100", "[agent] says no"}
    assert [one.label for one in turn.candidates] == list(turn.labels.labels)
    request = request_of(turn)
    for text in (request.prompt, request.system):
        assert not any(name in text.casefold().split() for name in ("ada", "bob", "cyd"))
    candidates = (request.context or {})["candidates"]
    assert not any(name in canonical(candidates).decode().casefold() for name in ("ada", "bob", "cyd"))


def test_the_first_proposal_knows_nothing_but_the_question() -> None:
    turn = propose_turn(COUNCIL, ADA, [], ["be brief"])
    assert context_of(turn) == {
        "task_description": "Shall we?",
        "round_number": 1,
        "total_rounds": 3,
        "phase": "propose",
        "candidates": [],
        "previous_critiques": [],
        "user_injections": ["be brief"],
        "agent_id": "ada",
        "score_range": [0, 1],
    }


def test_the_next_proposal_knows_what_became_of_the_last_one() -> None:
    turn = propose_turn(COUNCIL, ADA, [a_round(1, PROPOSALS, first_round())])
    context = context_of(turn)
    assert context["round_number"] == 2
    assert context["previous_own_proposal"] == {"thought_process": "", "content": "Ada says yes, give me 100"}
    assert context["previous_own_score"] == 0.5  # once -1 and once 1
    assert context["previous_critiques"] == ["[your proposal] is weaker than [another proposal], says [agent]"]
    assert context["contested_claims"] == ["it works (contested: [agent] tried it)"]
    assert context["scratchpad"] == "ask about cost"
    assert "verified_claims" not in context
    scores = {one["proposal"]["content"]: one["score"] for one in context["candidates"]}
    assert scores["[agent] says no"] < 0.5 < scores["maybe"]


def test_who_declares_a_signed_scale_gets_its_scores_on_it() -> None:
    member = CouncilMember(name="ada", scale=ScoreScale.SIGNED, role="skeptic", persona="You doubt numbers.")
    signed = Council(question="?", members=(member, BOB, CYD), rounds=3, seed=1)
    context = context_of(propose_turn(signed, member, [a_round(1, PROPOSALS, first_round())]))
    assert (context["previous_own_score"], context["score_range"]) == (0.0, [-1, 1])
    assert (context["role"], context["role_context"]) == ("skeptic", "You doubt numbers.")
    assert system_of(member) == f"{INSTRUCTIONS}\n\nYour role in the council: skeptic\n\nYou doubt numbers."


def test_who_was_benched_is_told_and_who_skipped_is_not() -> None:
    absences = [
        CouncilAbstention(
            agent="ada", phase=CouncilPhase.EVALUATE, cause=AbstentionCause.LATE, reason="no answer in 5 s"
        ),
        CouncilAbstention(agent="bob", phase=CouncilPhase.EVALUATE, cause=AbstentionCause.SKIPPED),
        CouncilAbstention(agent="cyd", phase=CouncilPhase.PROPOSE, cause=AbstentionCause.NOT_STARTED),
    ]
    past = [a_round(1, PROPOSALS[:2], [evaluation("cyd", ada=1, bob=2)], absences)]
    notices = [propose_turn(COUNCIL, member, past).memory.notices for member in COUNCIL.members]
    assert notices == [
        ("You had no part in the phase evaluate of round 1: no answer in 5 s",),
        (),
        ("You had no part in the phase propose of round 1: not started",),
    ]
    assert "no answer in 5 s" in request_of(propose_turn(COUNCIL, ADA, past)).prompt


def test_a_member_that_missed_a_round_keeps_its_notes() -> None:
    missed = a_round(2, PROPOSALS[1:], [evaluation("bob", cyd=1)])
    turn = propose_turn(COUNCIL, ADA, [a_round(1, PROPOSALS, first_round()), missed])
    assert turn.memory.scratchpad == "ask about cost"
    assert turn.memory.score == 0.0


def test_time_and_session_are_no_part_of_the_question() -> None:
    turn = propose_turn(COUNCIL, ADA, [])
    early, late = request_of(turn, seconds_left=60, session="run-1"), request_of(turn, seconds_left=5.5)
    assert early.volatile == {"phase_budget_remaining_secs": 60, "session_id": "run-1"}
    assert late.volatile == {"phase_budget_remaining_secs": 5.5}
    assert replace(early, volatile={}) == replace(late, volatile={})


def turns_of(member: CouncilMember) -> list[CouncilTurn]:
    past = [a_round(1, PROPOSALS, first_round())]
    return [
        propose_turn(COUNCIL, member, []),
        evaluate_turn(COUNCIL, member, PROPOSALS, []),
        propose_turn(COUNCIL, member, past),
        evaluate_turn(COUNCIL, member, PROPOSALS, past, ["hurry"]),
    ]


def test_system_prompt_and_beginning_are_the_same_in_all_turns_of_a_member() -> None:
    requests = [request_of(turn) for turn in turns_of(ADA)]
    assert len({request.system for request in requests}) == 1
    assert len({request.prompt[: request.shared] for request in requests}) == 1
    assert "Round 2 of at most 3: evaluate" in requests[3].prompt
    assert "Message from the person who asked\nhurry" in requests[3].prompt


@pytest.mark.parametrize("place", [1, 2, 3])
def test_what_others_wrote_stands_behind_a_fence(place: int) -> None:
    turn = turns_of(CYD)[place]
    prompt = request_of(turn).prompt
    token = prompt.partition("The fence token of this message is ")[2].split()[0]
    outside = "\n".join(part.partition("<<<END")[2] if part else part for part in prompt.split("<<<BEGIN"))
    assert prompt.count(f"{token}>>>") == 2 * len(turn.candidates) + 2 * len(turn.memory.critiques)
    assert "give me 100" in prompt
    assert "give me 100" not in outside


def test_a_repair_repeats_the_conversation_and_says_what_is_wrong() -> None:
    request = request_of(turns_of(ADA)[1])
    again = repair_of(request, "", "it is empty")
    assert [message.role.value for message in again.messages] == ["user", "assistant", "user"]
    assert again.messages[1].text == "(no answer)"
    assert "it is empty" in again.prompt
    assert (again.schema, again.system) == (request.schema, request.system)


def test_a_person_reads_quotations_and_no_fence() -> None:
    held = Council(
        question="q", members=(CouncilMember(name="me", person=True), CouncilMember(name="a")), rounds=1, seed=1
    )
    turn = evaluate_turn(held, held.members[0], [Proposal(agent="a", text="one\n\ntwo", claims=("c",))], ())
    (label,) = turn.labels.labels
    (message,) = request_of(turn).messages
    assert f"# Candidates\n\ncandidate {label}:\n> one\n>\n> two\n> claim 1: c\n\n# Your task" in message.text
    assert "fence" not in message.text
