"""Scoring: a table computed by hand, what is rejected, ties, and what never changes a result."""

from fractions import Fraction
from math import isclose, nan, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.councils.order import ScoreScale
from muster.councils.rules.scoring import RoundScore, TieBreak, score_round, weight_of
from muster.councils.rules.stopping import conviction_of
from muster.councils.rules.values import Evaluation, Proposal, RejectedVote, Vote
from muster.domain.errors import BadArgument
from tests.councils.cases import evaluation, evaluations, proposals

AGENTS = ("ada", "bob", "cyd", "dee")


def outcome(score: RoundScore) -> object:
    """Everything that says who won and why."""
    return score.standings, score.winner, score.tied, score.tie_break


def test_the_score_of_a_round_is_the_one_computed_by_hand() -> None:
    """Each evaluator's weights over the sum of their absolute values, the signed square root of that, and the sum.

    | evaluator | weights           | shares           | contributions |
    |-----------|-------------------|------------------|---------------|
    | ada       | bob 60, cyd -20   | 0.75, -0.25      | 0.8660, -0.5  |
    | bob       | ada 100, cyd 0    | 1, 0             | 1, 0          |
    | cyd       | ada -16, bob 9    | -0.64, 0.36      | -0.8, 0.6     |
    """
    table: dict[str, dict[str, float | None]] = {
        "ada": {"bob": 60, "cyd": -20},
        "bob": {"ada": 100, "cyd": 0},
        "cyd": {"ada": -16, "bob": 9},
    }
    score = score_round(proposals("ada", "bob", "cyd"), evaluations(table), seed=1)
    assert [(one.agent, one.in_favour, one.against) for one in score.standings] == [
        ("bob", 2, 0),
        ("ada", 1, 1),
        ("cyd", 0, 1),
    ]
    assert [one.support for one in score.standings] == pytest.approx([0.8660254 + 0.6, 1 - 0.8, -0.5])
    assert {(cell.evaluator, cell.target): cell.share for cell in score.contributions} == {
        ("ada", "bob"): 0.75,
        ("ada", "cyd"): -0.25,
        ("bob", "ada"): 1.0,
        ("bob", "cyd"): 0.0,
        ("cyd", "ada"): -0.64,
        ("cyd", "bob"): 0.36,
    }
    # For and against ada: 1 and 0.8, so that 0.2 of 1.8 is left; the others have only one side.
    assert [one.controversy for one in score.standings] == pytest.approx([0, 1 - 0.2 / 1.8, 0])
    assert (score.winner, score.tied, score.rejections, score.missing) == ("bob", (), (), ())
    assert conviction_of(score) == pytest.approx(1.4660254 / (1.4660254 + 0.2 + 0.5))


@pytest.mark.parametrize(
    ("score", "scale", "weight"),
    [
        (0.5, ScoreScale.UNIT, 0.0),
        (0, ScoreScale.UNIT, -100.0),
        (1, ScoreScale.UNIT, 100.0),
        (0.7, ScoreScale.UNIT, 40.0),
        (-0.3, ScoreScale.SIGNED, -30.0),
        (0, ScoreScale.SIGNED, 0.0),
        (-0.001, ScoreScale.UNIT, None),
        (1.001, ScoreScale.SIGNED, None),
        (-1.5, ScoreScale.SIGNED, None),
        (nan, ScoreScale.UNIT, None),
    ],
)
def test_a_score_of_the_exec_protocol_means_a_weight_or_is_out_of_its_scale(
    score: float, scale: ScoreScale, weight: float | None
) -> None:
    assert weight_of(score, scale) == weight


@pytest.mark.parametrize(
    ("bad", "target", "why"),
    [
        (evaluation("ada", bob=10, eve=90), "eve", "no such proposal"),
        (evaluation("ada", bob=101, cyd=1), "bob", "not between -100 and 100"),
        (evaluation("ada", bob=nan), "bob", "not between -100 and 100"),
        (
            Evaluation(agent="ada", votes=(Vote(target="bob", weight=1), Vote(target="bob", weight=2))),
            "bob",
            "more than once",
        ),
        (
            Evaluation(
                agent="ada", votes=(Vote(target="cyd", weight=1),), rejected=(RejectedVote(target="z", reason="no"),)
            ),
            "z",
            "no",
        ),
        (Evaluation(agent="ada", votes=(Vote(target="bob", weight=50.0),), coerced=True), "", "holds no evaluation"),
    ],
)
def test_a_vote_that_cannot_count_is_named_and_the_rest_counts(bad: Evaluation, target: str, why: str) -> None:
    others = [evaluation("bob", ada=50, cyd=-50), evaluation("cyd", ada=10, bob=-90)]
    score = score_round(proposals("ada", "bob", "cyd"), [bad, *others], seed=1)
    assert [(one.evaluator, one.target) for one in score.rejections] == [("ada", target)]
    assert why in score.rejections[0].reason
    votes = () if bad.coerced else tuple(vote for vote in bad.votes if vote.target != target)
    rest = Evaluation(agent="ada", votes=votes)
    assert outcome(score) == outcome(score_round(proposals("ada", "bob", "cyd"), [rest, *others], seed=1))


def test_a_proposal_that_was_not_weighed_is_named_and_abstaining_from_one_is_not_missing() -> None:
    given = [evaluation("ada", bob=50), evaluation("bob", ada=50, cyd=None)]
    score = score_round(proposals("ada", "bob", "cyd"), given, seed=1)
    assert score.missing == (("ada", "cyd"),)
    assert {(cell.evaluator, cell.target) for cell in score.contributions} == {("ada", "bob"), ("bob", "ada")}


def test_a_round_in_which_nothing_counts_has_no_winner() -> None:
    coerced = Evaluation(agent="ada", votes=(Vote(target="bob", weight=90),), coerced=True)
    score = score_round(proposals("ada", "bob"), [coerced, evaluation("bob", bob=100)], seed=1)
    assert (score.winner, score.tied, score.tie_break) == (None, (), None)
    assert conviction_of(score) == 0


def test_who_evaluates_without_a_proposal_counts() -> None:
    score = score_round(proposals("ada", "bob"), [evaluation("eve", ada=-1, bob=1)], seed=1)
    assert score.winner == "bob"


def test_an_agent_has_one_proposal_and_one_evaluation_in_a_round() -> None:
    with pytest.raises(BadArgument, match="one proposal of each agent at most; there are more of: ada"):
        score_round(proposals("ada", "ada"), [], seed=1)
    with pytest.raises(BadArgument, match="one evaluation of each agent"):
        score_round(proposals("ada"), [evaluation("bob", ada=1), evaluation("bob", ada=1)], seed=1)


def test_a_tie_goes_to_whom_more_evaluators_favour() -> None:
    # bob: four quarters of a share each, 4 * 0.5 = 2; ada: twice the whole share, 2 * 1 = 2.
    table: dict[str, dict[str, float | None]] = {
        "e1": {"bob": 25, "cyd": -75},
        "e2": {"bob": 25, "cyd": -75},
        "e3": {"bob": 25, "cyd": -75},
        "e4": {"bob": 25, "cyd": -75},
        "e5": {"ada": 80},
        "e6": {"ada": 1},
    }
    longer = proposals("ada", "bob", "cyd", ada=1, bob=900)
    score = score_round(longer, evaluations(table), seed=1)
    assert (score.winner, score.tied, score.tie_break) == ("bob", ("ada", "bob"), TieBreak.IN_FAVOUR)


def test_a_tie_goes_to_the_shorter_and_then_to_a_draw_by_the_seed() -> None:
    each: dict[str, dict[str, float | None]] = {"ada": {"bob": 10}, "bob": {"ada": 99}}
    shorter = score_round(proposals("ada", "bob", ada=200, bob=100), evaluations(each), seed=1)
    assert (shorter.winner, shorter.tied, shorter.tie_break) == ("bob", ("ada", "bob"), TieBreak.TOKENS)
    drawn = {score_round(proposals("ada", "bob"), evaluations(each), seed=seed).winner for seed in range(20)}
    assert drawn == {"ada", "bob"}
    one = score_round(proposals("ada", "bob"), evaluations(each), seed=3)
    assert one.tie_break is TieBreak.DRAW
    assert one == score_round(proposals("ada", "bob"), evaluations(each), seed=3)


def test_who_does_not_say_how_many_tokens_it_wrote_wins_no_tie_by_that() -> None:
    each: dict[str, dict[str, float | None]] = {"dee": {"ada": 1, "bob": 1}}
    made = [score_round(proposals("ada", "bob", bob=9), evaluations(each), seed=seed) for seed in range(20)]
    assert {one.tie_break for one in made} == {TieBreak.DRAW}
    assert {one.winner for one in made} == {"ada", "bob"}


def test_sums_of_square_roots_that_are_equal_on_paper_are_a_tie() -> None:
    # 3 * sqrt(1/18) = sqrt(1/2), which floats miss by a bit.
    assert sqrt(1 / 18) * 3 != sqrt(1 / 2)
    assert isclose(sqrt(1 / 18) * 3, sqrt(1 / 2))
    table: dict[str, dict[str, float | None]] = {f"e{n}": {"ada": 1, "cyd": -17} for n in range(3)}
    table["e4"] = {"bob": 1, "cyd": -1}
    assert score_round(proposals("ada", "bob", "cyd"), evaluations(table), seed=1).tied == ("ada", "bob")


WEIGHTS = st.one_of(st.integers(-100, 100), st.sampled_from([-0.1, 0.1, 0.3, 33.3, 1e-7, 66.6]))


@st.composite
def councils(draw: st.DrawFn) -> tuple[list[Proposal], list[Evaluation]]:
    """Proposals of all, and evaluations of some of the others' with any weights."""
    made = [Proposal(agent=name, text=name, tokens=draw(st.integers(0, 2))) for name in AGENTS]
    said = []
    for agent in draw(st.lists(st.sampled_from(AGENTS), unique=True, min_size=1)):
        targets = draw(st.lists(st.sampled_from([one for one in AGENTS if one != agent]), unique=True))
        said.append(Evaluation(agent=agent, votes=tuple(Vote(target=one, weight=draw(WEIGHTS)) for one in targets)))
    return made, said


@given(councils(), st.randoms(use_true_random=False), st.integers(0, 3))
def test_permuting_agents_votes_or_candidates_never_changes_the_result(
    case: tuple[list[Proposal], list[Evaluation]], random: Random, seed: int
) -> None:
    made, said = case
    shuffled = [
        Evaluation(agent=one.agent, votes=tuple(random.sample(one.votes, len(one.votes))))
        for one in random.sample(said, len(said))
    ]
    again = score_round(random.sample(made, len(made)), shuffled, seed=seed)
    assert again == score_round(made, said, seed=seed)


@given(councils(), st.integers(0, 3), st.integers(1, 100))
def test_scaling_the_weights_of_one_evaluator_never_changes_the_result(
    case: tuple[list[Proposal], list[Evaluation]], place: int, factor: int
) -> None:
    made, said = case
    chosen, rest = said[place % len(said)], [one for one in said if one is not said[place % len(said)]]
    # Thousandths, so that every multiple up to 100 is in range; 0.003 means three of them, not its nearest float.
    small, large = (
        Evaluation(
            agent=chosen.agent,
            votes=tuple(
                Vote(target=vote.target, weight=float(Fraction(round(vote.weight or 0) * times, 1000)))
                for vote in chosen.votes
            ),
        )
        for times in (1, factor)
    )
    before, after = (score_round(made, [*rest, one], seed=1) for one in (small, large))
    assert outcome(after) == outcome(before)
    assert [cell.share for cell in after.contributions] == [cell.share for cell in before.contributions]


@given(councils(), st.sampled_from(AGENTS), st.one_of(WEIGHTS, st.just(5000), st.just(nan)))
def test_a_self_vote_never_changes_the_result_and_is_named(
    case: tuple[list[Proposal], list[Evaluation]], agent: str, weight: float
) -> None:
    made, said = case
    before = next((one for one in said if one.agent == agent), Evaluation(agent=agent, votes=()))
    rest = [one for one in said if one.agent != agent]
    selfish = Evaluation(agent=agent, votes=(*before.votes, Vote(target=agent, weight=weight)))
    score = score_round(made, [*rest, selfish], seed=1)
    assert outcome(score) == outcome(score_round(made, [*rest, before], seed=1))
    assert [(one.evaluator, one.target) for one in score.rejections] == [(agent, agent)]


def test_a_round_in_which_no_proposal_is_supported_has_no_winner_and_says_what_the_best_has() -> None:
    three = ("ada", "bob", "cyd")
    each = [evaluation(name, **{other: -100 for other in three if other != name}) for name in three]
    score = score_round(proposals(*three), each, seed=1)
    assert (score.winner, score.tied, score.tie_break) == (None, (), None)
    assert score.undecided == "no proposal is supported: the best has -1.414"
    neutral = score_round(proposals("ada", "bob"), [evaluation("ada", bob=0), evaluation("bob", ada=0)], seed=1)
    assert (neutral.winner, neutral.undecided) == (None, "no proposal is supported: the best has 0.000")
    assert score_round(proposals("ada", "bob"), [], seed=1).undecided == "no evaluation counted"


def test_who_weighs_nobody_has_no_advantage_of_it() -> None:
    """By hand: dee is weighed by three, each of the others by two; its 3 × 0.577 count two thirds."""
    flat: dict[str, dict[str, float | None]] = {
        name: {other: 50 for other in AGENTS if other != name} for name in AGENTS if name != "dee"
    }
    score = score_round(proposals(*AGENTS), evaluations(flat), seed=1)
    assert [one.support for one in score.standings] == pytest.approx([2 * sqrt(1 / 3)] * 4)
    assert score.tied == AGENTS
    assert {one.agent: one.factor for one in score.standings} == {"ada": 1, "bob": 1, "cyd": 1, "dee": 2 / 3}
    assert [one.agent for one in score.scaled] == ["dee"]


@given(st.integers(3, 7), st.data(), WEIGHTS.filter(lambda weight: weight > 0))
def test_when_all_give_the_same_and_some_abstain_all_are_still_tied(n: int, data: st.DataObject, weight: float) -> None:
    names = [f"m{place}" for place in range(n)]
    silent = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=n - 2))
    neutral = data.draw(st.sets(st.sampled_from(silent))) if silent else set()
    said = [
        Evaluation(
            agent=name,
            votes=tuple(
                Vote(target=other, weight=0 if name in neutral else weight) for other in names if other != name
            ),
        )
        for name in names
        if name not in silent or name in neutral
    ]
    assert score_round(proposals(*names), said, seed=1).tied == tuple(names)


def test_where_no_author_evaluates_nothing_is_scaled() -> None:
    said = [evaluation("eve", ada=60, bob=20), evaluation("fay", ada=60, bob=20)]
    score = score_round(proposals("ada", "bob"), said, seed=1)
    assert [one.support for one in score.standings] == pytest.approx([2 * sqrt(0.75), 1])
    assert score.scaled == ()


@given(councils())
def test_neutral_votes_change_nothing(case: tuple[list[Proposal], list[Evaluation]]) -> None:
    made, voted = case
    silent = [Evaluation(agent=name, votes=()) for name in AGENTS if name not in {one.agent for one in voted}]
    filled = [
        Evaluation(
            agent=one.agent,
            votes=(
                *one.votes,
                *(
                    Vote(target=name, weight=0)
                    for name in AGENTS
                    if name != one.agent and name not in {vote.target for vote in one.votes}
                ),
            ),
        )
        for one in (*voted, *silent)
    ]
    assert outcome(score_round(made, filled, seed=1)) == outcome(score_round(made, voted, seed=1))


@given(councils())
def test_no_evaluator_moves_more_than_the_square_root_of_its_targets(
    case: tuple[list[Proposal], list[Evaluation]],
) -> None:
    made, said = case
    score = score_round(made, said, seed=1)
    for one in said:
        moved = sum(abs(cell.value) for cell in score.contributions if cell.evaluator == one.agent)
        assert moved <= sqrt(len(one.votes)) + 1e-9


def test_who_gives_everybody_the_same_changes_no_order_among_them() -> None:
    said = [evaluation("bob", ada=60, cyd=-20, dee=20), evaluation("cyd", ada=30, bob=40, dee=-30)]
    others = [name for name in AGENTS if name != "ada"]
    for weight in (100, 1, -100):
        flat = Evaluation(agent="ada", votes=tuple(Vote(target=name, weight=weight) for name in others))
        score = score_round(proposals(*AGENTS), [*said, flat], seed=1)
        without = score_round(proposals(*AGENTS), said, seed=1)
        assert [one.agent for one in score.standings if one.agent != "ada"] == [
            one.agent for one in without.standings if one.agent != "ada"
        ]


def test_a_colluding_pair_does_not_win_against_three_that_agree() -> None:
    pair = [evaluation("x", y=100, ada=-100, bob=-100, cyd=-100), evaluation("y", x=100, ada=-100, bob=-100, cyd=-100)]
    subtle = [evaluation("x", y=100, ada=0, bob=0, cyd=0), evaluation("y", x=100, ada=0, bob=0, cyd=0)]
    honest = [
        evaluation("ada", bob=40, cyd=20, x=-40, y=-40),
        evaluation("bob", ada=80, cyd=10, x=-40, y=-40),
        evaluation("cyd", ada=80, bob=10, x=-40, y=-40),
    ]
    for colluding in (pair, subtle):
        score = score_round(proposals("ada", "bob", "cyd", "x", "y"), [*colluding, *honest], seed=1)
        assert score.winner != "x"
        assert score.winner != "y"
        assert all(one.controversy > 0.4 for one in score.standings if one.agent in ("x", "y"))


@pytest.mark.parametrize(
    ("given_to_the_pair", "supports"),
    [
        # 90 of 220 for each honest one, 20 of 220 for each of the pair; the pair gives 100 and four times -100.
        (20, {"pair": 1 * sqrt(1 / 4) + 3 * sqrt(20 / 220), "honest": 2 * sqrt(90 / 220) - 2 * sqrt(1 / 4)}),
        (-20, {"pair": 1 * sqrt(1 / 4) - 3 * sqrt(20 / 220), "honest": 2 * sqrt(90 / 220) - 2 * sqrt(1 / 4)}),
    ],
)
def test_a_colluding_pair_wins_when_the_honest_favour_it_and_loses_when_they_do_not(
    given_to_the_pair: float, supports: dict[str, float]
) -> None:
    honest, pair = ("ada", "bob", "cyd"), ("x", "y")
    table: dict[str, dict[str, float | None]] = {
        name: {other: 90 for other in honest if other != name} | dict.fromkeys(pair, given_to_the_pair)
        for name in honest
    }
    table |= {
        name: {other: 100 if other in pair else -100 for other in (*honest, *pair) if other != name} for name in pair
    }
    score = score_round(proposals(*honest, *pair), evaluations(table), seed=1)
    found = {one.agent: one.support for one in score.standings}
    assert found == pytest.approx({name: supports["pair" if name in pair else "honest"] for name in found})
    assert (score.winner in pair) == (given_to_the_pair > 0)
