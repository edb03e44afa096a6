"""A whole council in memory: two models, and a program that answers in the exec protocol, from turn to result."""

from collections.abc import Sequence

from muster.agents.program.answer import context_of
from muster.agents.program.exec_protocol import decode
from muster.councils.members.answers import read_evaluation, read_proposal
from muster.councils.members.prompts import request_of
from muster.councils.members.turns import Council, CouncilTurn, evaluate_turn, propose_turn
from muster.councils.rules.outcome import CouncilResult, CouncilRound
from muster.councils.rules.scoring import score_round
from muster.councils.rules.stopping import Conditions, StopDecision, StopReason, StopRule, conviction_of, decide
from muster.councils.rules.values import CouncilMember, CouncilPhase, Evaluation, Proposal
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json, canonical
from tests.councils.cases import reply

PROGRAM = "checker"
ANSWERS = {"one": "42", "two": "41", PROGRAM: "42, since 6 × 7 = 42"}


def scripted(turn: CouncilTurn) -> Reply:
    """Answer a turn: everybody believes in answers that begin with 42, and gives up its own when it was disliked."""
    name, request = turn.member.name, request_of(turn, seconds_left=30, session="run")
    if turn.phase is CouncilPhase.PROPOSE:
        is_disliked = turn.memory.score is not None and turn.memory.score < 0
        text = "42 after all" if is_disliked else ANSWERS[name]
        said: Json = {"thought_process": "", "content": text} if name == PROGRAM else {"text": text}
    else:
        said = {"evaluations": [_item(one.label, one.text, name == PROGRAM) for one in turn.candidates]}
    return _from_program(said, request, name) if name == PROGRAM else reply(said)


def _item(label: str, text: str, is_program: bool) -> dict[str, Json]:
    is_good = text.startswith("42")
    why = "right" if is_good else "wrong"
    if is_program:
        return {"target_id": label, "score": 0.9 if is_good else 0.0, "justification": why}
    return {"candidate": label, "weight": (60 if "since" in text else 40) if is_good else -80, "critique": why}


def _from_program(said: Json, request: Request, name: str) -> Reply:
    answer = decode(canonical(said), context_of(request, name, 30.0))
    return Reply(text=answer.text, data=answer.data)


def argue(council: Council, rule: StopRule) -> CouncilResult:
    """Let a council argue, as a workload would."""
    past: list[CouncilRound] = []
    while True:
        past.append(_round(council, past))
        decision = _decide(rule, past)
        if decision.reason is not None:
            return CouncilResult(question=council.question, members=council.members, rounds=tuple(past), stop=decision)


def _round(council: Council, past: Sequence[CouncilRound]) -> CouncilRound:
    proposals = []
    for member in council.members:
        proposal = read_proposal(scripted(propose_turn(council, member, past)), member.name)
        assert isinstance(proposal, Proposal)
        proposals.append(proposal)
    evaluations = []
    for member in council.members:
        turn = evaluate_turn(council, member, proposals, past)
        evaluation = read_evaluation(scripted(turn), turn.labels, proposals, member.scale)
        assert isinstance(evaluation, Evaluation)
        evaluations.append(evaluation)
    return CouncilRound(
        number=len(past) + 1,
        proposals=tuple(proposals),
        evaluations=tuple(evaluations),
        abstentions=(),
        score=score_round(proposals, evaluations, seed=council.seed),
    )


def _decide(rule: StopRule, past: Sequence[CouncilRound]) -> StopDecision:
    conditions = Conditions(candidates=len(past[-1].proposals), members=3)
    return decide(rule, [conviction_of(one.score) for one in past], conditions)


def test_a_council_of_models_and_a_program_comes_to_a_result() -> None:
    members = tuple(CouncilMember(name=name) for name in ANSWERS)
    result = argue(Council(question="What is 6 × 7?", members=members, rounds=4, seed="run"), StopRule(max_rounds=4))
    assert result.winner == Proposal(agent=PROGRAM, text="42, since 6 × 7 = 42")
    assert result.stop.reason is StopReason.CONVINCED
    first = result.rounds[0]
    assert first.score.support_of("two") < 0
    assert (first.score.rejections, first.score.missing) == ((), ())
    assert result.dissent == ()


def test_who_was_disliked_learns_it_and_gives_in() -> None:
    members = tuple(CouncilMember(name=name) for name in ANSWERS)
    council = Council(question="What is 6 × 7?", members=members, rounds=2, seed="run")
    result = argue(council, StopRule(max_rounds=2, min_rounds=2))
    assert [one.text for one in result.rounds[1].proposals] == ["42", "42 after all", "42, since 6 × 7 = 42"]
    told = propose_turn(council, members[1], result.rounds[:1]).memory
    assert told.critiques == ("wrong", "wrong")
