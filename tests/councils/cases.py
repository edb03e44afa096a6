"""What the tests of councils have in common: short ways to write proposals, votes and rounds."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.councils.members.turns import Council
from muster.councils.rules.outcome import CouncilRound
from muster.councils.rules.scoring import score_round
from muster.councils.rules.values import CouncilAbstention, CouncilMember, Evaluation, Proposal, Vote
from muster.domain.call import Reply, Stop
from muster.domain.canonical import Json, canonical


def proposals(*agents: str, **tokens: int) -> list[Proposal]:
    """Return one proposal of each agent."""
    return [Proposal(agent=agent, text=f"what {agent} thinks", tokens=tokens.get(agent, 0)) for agent in agents]


def evaluation(agent: str, /, **weights: float | None) -> Evaluation:
    """Return an evaluation by the names of its targets."""
    return Evaluation(agent=agent, votes=tuple(Vote(target=name, weight=one) for name, one in weights.items()))


def evaluations(table: Mapping[str, Mapping[str, float | None]]) -> list[Evaluation]:
    """Return evaluations from a table: evaluator, target, weight."""
    return [evaluation(agent, **weights) for agent, weights in table.items()]


def council(*agents: str, question: str = "Which one?", seed: int | str = 1, rounds: int = 3) -> Council:
    """Return a council of agents by their names."""
    members = tuple(CouncilMember(name=agent) for agent in agents)
    return Council(question=question, members=members, rounds=rounds, seed=seed)


def a_round(
    number: int,
    proposed: Sequence[Proposal],
    evaluated: Sequence[Evaluation],
    abstentions: Sequence[CouncilAbstention] = (),
) -> CouncilRound:
    """Return a round with its score."""
    return CouncilRound(
        number=number,
        proposals=tuple(proposed),
        evaluations=tuple(evaluated),
        abstentions=tuple(abstentions),
        score=score_round(proposed, evaluated, seed=1),
    )


def reply(value: Any, *, data: Json = None, stop: Stop = Stop.END) -> Reply:
    """Return a reply whose text is a value, in JSON unless it is a text already."""
    text = value if isinstance(value, str) else canonical(value).decode("utf-8", "surrogatepass")
    return Reply(text=text, data=data, stop=stop)
