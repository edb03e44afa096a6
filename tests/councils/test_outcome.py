"""The outcome of a council: winner, claims with who said what, dissent."""

from muster.councils.rules.outcome import AssessedClaim, CouncilResult, claims_in, dissent_in
from muster.councils.rules.stopping import Conditions, StopRule, decide
from muster.councils.rules.values import ClaimAssessment, ClaimStance, Evaluation, Proposal, Vote
from tests.councils.cases import a_round, evaluation, proposals


def assessed(claim: str, stance: ClaimStance, reason: str = "") -> ClaimAssessment:
    return ClaimAssessment(claim=claim, stance=stance, reason=reason)


def test_who_says_the_same_about_a_claim_is_listed_together() -> None:
    wet, dry = assessed("c", ClaimStance.CONTESTED, "wet"), assessed("c", ClaimStance.VERIFIED, "dry")
    claim = AssessedClaim(agent="ada", claim="c", said=(("bob", dry), ("cyd", wet), ("dee", wet)))
    assert claim.opinions == (
        (ClaimStance.CONTESTED, "wet", ("cyd", "dee")),
        (ClaimStance.VERIFIED, "dry", ("bob",)),
    )


def test_a_claim_is_contested_when_anybody_contests_it_and_everybody_is_quoted() -> None:
    contested = assessed("water is dry", ClaimStance.CONTESTED, "it is wet")
    verified = assessed("water is dry", ClaimStance.VERIFIED)
    cold = assessed("ice is cold", ClaimStance.VERIFIED, "touched it")
    votes = [
        Evaluation(agent="cyd", votes=(Vote(target="ada", weight=5, claims=(verified,)),)),
        Evaluation(agent="bob", votes=(Vote(target="ada", weight=-5, claims=(contested, cold)),)),
        Evaluation(agent="dee", votes=(Vote(target="ada", weight=0, claims=(contested,)),), coerced=True),
    ]
    claims = claims_in(a_round(1, proposals("ada", "bob"), votes))
    assert [(one.claim, one.is_contested) for one in claims] == [("ice is cold", False), ("water is dry", True)]
    assert claims[1].said == (("bob", contested), ("cyd", verified))


def test_who_is_against_the_winner_or_prefers_another_dissents_with_a_critique() -> None:
    votes = [
        Evaluation(
            agent="bob",
            votes=(Vote(target="ada", weight=-40, critique="too short"), Vote(target="cyd", weight=10)),
        ),
        evaluation("cyd", ada=100, bob=-1),
        evaluation("dee", ada=100, bob=100),
        evaluation("eve", ada=50, bob=60, cyd=0),
        evaluation("fay", ada=-50, bob=-60),
        evaluation("gus", ada=90, bob=10),
        evaluation("hal", bob=-10),
    ]
    one = a_round(1, proposals("ada", "bob", "cyd"), votes)
    assert one.score.winner == "ada"
    found = [(dissent.agent, dissent.weight, dissent.preferred, dissent.critique) for dissent in dissent_in(one)]
    assert found == [("bob", -40, "cyd", "too short"), ("eve", 50, "bob", ""), ("fay", -50, "", "")]


def test_the_winner_stands_as_it_was_proposed_in_the_last_round_that_counts() -> None:
    first = a_round(
        1, [Proposal(agent="ada", text="one"), Proposal(agent="bob", text="two")], [evaluation("bob", ada=5)]
    )
    uncounted = a_round(2, [Proposal(agent="ada", text="three"), Proposal(agent="bob", text="four")], [])
    stop = decide(StopRule(), [0.5, 0.0], Conditions(candidates=2, members=2))
    result = CouncilResult(question="?", members=(), rounds=(first, uncounted), stop=stop)
    assert result.winner == Proposal(agent="ada", text="one")
    assert (result.dissent, result.contested) == ((), ())
    nothing = CouncilResult(question="?", members=(), rounds=(uncounted,), stop=stop)
    assert (nothing.winner, nothing.dissent, nothing.contested) == (None, (), ())
