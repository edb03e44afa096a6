"""Anonymity: labels map back, orders differ, names are replaced, and position decides nothing unseen."""

from math import comb
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.councils.rules.anonymity import (
    CandidateLabels,
    PositionEffect,
    labels_for,
    position_biases,
    position_effects,
    without_labels,
    without_names,
)
from muster.councils.rules.scoring import RoundScore, score_round
from muster.councils.rules.values import CouncilPhase, Evaluation, Vote
from muster.domain.errors import BadArgument
from tests.councils.cases import evaluation, proposals

EVALUATE = CouncilPhase.EVALUATE


def labels(viewer: str, *agents: str, round_number: int = 1, seed: int | str = 1) -> CandidateLabels:
    return labels_for(viewer, agents, round_number=round_number, phase=EVALUATE, seed=seed)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=12, unique=True), st.integers(), st.data())
def test_labels_map_back_whatever_the_names_and_their_order(agents: list[str], seed: int, data: st.DataObject) -> None:
    found = labels(agents[0], *agents, seed=seed)
    assert sorted(found.agents) == sorted(agents[1:])
    assert len(set(found.labels)) == len(agents) - 1
    assert [found.agent_of(label) for label in found.labels] == list(found.agents)
    assert [found.label_of(agent) for agent in found.agents] == list(found.labels)
    assert not {label.casefold() for label in found.labels} & {agent.casefold() for agent in agents}
    assert labels(agents[0], *data.draw(st.permutations(agents)), seed=seed) == found


def test_a_label_or_an_agent_that_was_not_shown_is_not_mapped() -> None:
    found = labels("ada", "ada", "bob")
    assert found.agent_of("ada") is None
    with pytest.raises(BadArgument, match="the proposal of 'ada' was not shown to 'ada'"):
        found.label_of("ada")


def test_every_evaluator_round_and_run_has_labels_and_an_order_of_its_own() -> None:
    agents = [f"agent-{number}" for number in range(8)]
    views = [
        labels(viewer, *agents, round_number=number, seed=seed)
        for viewer in agents[:2]
        for number in (1, 2)
        for seed in ("a", "b")
    ]
    assert len({view.labels for view in views}) == len(views)
    assert len({view.agents for view in views}) == len(views)


@pytest.mark.parametrize(
    ("text", "agents", "expected"),
    [
        ("I am Ada.", ["ada"], "I am [agent]."),
        ("ADA, (ada) and ada's; adage, Nevada", ["ada"], "[agent], ([agent]) and [agent]'s; adage, Nevada"),
        ("As anthropic/claude-x says", ["anthropic/claude-x"], "As [agent] says"),
        ("claude-x says", ["anthropic/claude-x"], "[agent] says"),
        ("claude-x-mini says", ["a/claude-x", "a/claude-x-mini"], "[agent] says"),
        ("GROSS und GROß", ["groß"], "[agent] und [agent]"),
        ("Зоя и ЗОЯ, зоял", ["зоя"], "[agent] и [agent], зоял"),
        (normalize("NFD", "from José."), [normalize("NFC", "josé")], "from [agent]."),
        ("İstanbul and i̇stanbul", ["İstanbul"], "[agent] and [agent]"),
        ("c++ and (c++)", ["c++"], "[agent] and ([agent])"),
        ("vain_agent, my_vain, _vain_; vainer", ["vain"], "[agent]_agent, my_[agent], _[agent]_; vainer"),
        ("vain_agent", ["vain", "vain_agent"], "[agent]"),
        ("nothing here", ["ada", " "], "nothing here"),
        ("ada", [], "ada"),
        ("", ["ada"], ""),
    ],
)
def test_names_of_agents_are_replaced_as_whole_words_in_any_case(text: str, agents: list[str], expected: str) -> None:
    assert without_names(text, agents) == expected


@given(st.text(), st.lists(st.text(min_size=1, max_size=5), max_size=4))
def test_replacing_names_never_fails_and_leaves_no_name_between_spaces(text: str, agents: list[str]) -> None:
    without_names(text, agents)
    named = [agent for agent in agents if agent.strip()]
    for agent in named:
        assert f" {agent} " not in without_names(f"x {agent} y", [*named, "x", "y"]).replace("[agent]", "")


def test_a_critique_reaches_its_target_without_the_labels_of_its_evaluator() -> None:
    found = labels("ada", "bob", "cyd")
    text = f"{found.label_of('bob').upper()} is worse than {found.label_of('cyd')}."
    assert without_labels(text, found, "bob") == "[your proposal] is worse than [another proposal]."


AGENTS = ("ada", "bob", "cyd", "dee")
SEEDS = range(100)


def two_sided_p(successes: int, trials: int, chance: float) -> float:
    """The exact binomial test: the probability of everything that is no likelier than what was seen."""

    def at(k: int) -> float:
        return comb(trials, k) * chance**k * (1 - chance) ** (trials - k)

    return sum(at(k) for k in range(trials + 1) if at(k) <= at(successes) * (1 + 1e-9))


def favours_the_first(view: CandidateLabels) -> Evaluation:
    """An evaluator that gives all its weight to whatever it is shown first."""
    votes = [Vote(target=agent, weight=-100.0) for agent in view.agents]
    return Evaluation(agent=view.viewer, votes=(Vote(target=view.agents[0], weight=100.0), *votes[1:]))


def decided_by_position(view: CandidateLabels) -> RoundScore:
    """A round in which only the biased evaluator says anything."""
    neutral = [evaluation(agent, **{other: 0.0 for other in AGENTS if other != agent}) for agent in AGENTS[1:]]
    return score_round(proposals(*AGENTS), [favours_the_first(view), *neutral], seed=1)


def test_shuffling_removes_the_effect_of_position_on_the_winner() -> None:
    fixed = CandidateLabels(viewer="ada", shown=(("x", "bob"), ("y", "cyd"), ("z", "dee")))
    assert {decided_by_position(fixed).winner for _ in SEEDS} == {"bob"}
    winners = [decided_by_position(labels("ada", *AGENTS, seed=seed)).winner for seed in SEEDS]
    for agent in AGENTS[1:]:
        assert two_sided_p(winners.count(agent), len(SEEDS), 1 / 3) > 0.01
    assert two_sided_p(100, 100, 1 / 3) < 1e-40


def effects_of(rounds: int, seed: int = 1) -> list[PositionEffect]:
    """Of rounds in which ada favours what is first, and bob always says the same."""
    effects = []
    for number in range(1, rounds + 1):
        views = [labels(agent, *AGENTS, round_number=number, seed=seed) for agent in AGENTS[:2]]
        fair = evaluation("bob", ada=10, cyd=60, dee=-30)
        score = score_round(proposals(*AGENTS), [favours_the_first(views[0]), fair], seed=1)
        effects += position_effects(views, score)
    return effects


def test_an_evaluator_that_favours_the_first_is_reported_after_three_rounds() -> None:
    biases = {one.evaluator: one for one in position_biases(effects_of(3))}
    assert list(biases) == ["", "ada", "bob"]
    assert biases["ada"].is_shown
    assert biases["ada"].effect == pytest.approx(2 / 3)
    assert (biases[""].evaluations, biases["ada"].evaluations) == (6, 3)


def test_a_fair_evaluator_is_seldom_reported() -> None:
    shown = [position_biases(effects_of(3, seed))[2].is_shown for seed in SEEDS]
    assert sum(shown) <= 10  # 5 are expected at most


def test_one_evaluation_proves_no_bias() -> None:
    assert [one.is_shown for one in position_biases(effects_of(1))] == [False, False, False]
    assert position_biases([]) == []


def test_who_did_not_weigh_all_it_was_shown_has_no_effect_of_position() -> None:
    view = labels("ada", *AGENTS)
    only = Evaluation(agent="ada", votes=(Vote(target=view.agents[0], weight=9.0),))
    rest = Evaluation(agent="ada", votes=tuple(Vote(target=agent, weight=9.0) for agent in view.agents[1:]))
    for one in (only, rest):
        assert position_effects([view], score_round(proposals(*AGENTS), [one], seed=1)) == []
