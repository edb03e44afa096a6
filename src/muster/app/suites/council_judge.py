"""A council as the judge of suites: its policy, read before anything is paid, and what its members are asked."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.agent_kinds.directory import AgentDirectory
from muster.app.base.costs import Load, Quoter, Quoting
from muster.councils.members.prompts import repair_of, request_of
from muster.councils.members.turns import Council, evaluate_turn, propose_turn
from muster.councils.policy import NAME, read_policy
from muster.councils.rules.outcome import CouncilRound
from muster.councils.rules.scoring import score_round
from muster.councils.rules.values import CouncilMember, Evaluation, Proposal, Vote
from muster.councils.spec import CouncilSpec, read_spec, stored
from muster.domain.advice import ArgumentAdvice
from muster.domain.call import Request
from muster.domain.dispatch import Mode
from muster.domain.errors import BadArgument
from muster.domain.named import COUNCIL_JUDGE
from muster.domain.script import BYTES_PER_TOKEN
from muster.suites.spec import SuiteSpec

_WHY = "x" * 500  # why an answer is to be repaired
_CRITIQUE = "x" * 500 * BYTES_PER_TOKEN
_QUESTION = "question"
_PLACEHOLDER = "?"
_RULES = frozenset({"members", "rounds", "min_rounds", "effort", "quorum", "timeout_secs"})  # of a policy that judges


def with_policy(spec: SuiteSpec, directory: AgentDirectory) -> SuiteSpec:
    """Return a spec with the policy of the council that judges; raises for a file or a member that does not do.

    The file is read once: what is part of a spec already is not read again.
    """
    if spec.judge_file is None:
        return spec
    policy = _read(spec.judge_file) if spec.council is None else policy_of(spec)
    found = stored(policy)
    del found[_QUESTION]
    for name in found:
        if name not in _RULES:
            raise BadArgument(
                f"{spec.judge}: a council that judges has no {name}: the winning verdict counts as it stands",
                suggestions=(f"remove {name} from the policy, or name another one",),
            )
    for member in policy.members:
        directory.find(member.name)
        if directory.is_person(member.name):
            raise BadArgument(
                f"{spec.judge}: {member.name} is a person, and would be asked about every answer",
                suggestions=("let people review verdicts: muster review RUN CASE",),
            )
    return replace(spec, council=found)


def _read(file: str) -> CouncilSpec:
    if not file:
        raise BadArgument(
            f"{COUNCIL_JUDGE} names no policy",
            suggestions=(ArgumentAdvice("judge", f"{COUNCIL_JUDGE}council.yaml", words="name its file: {}"),),
        )
    path = Path(file)
    return read_policy(path / NAME if path.is_dir() else path)


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilCalls:
    """What a council about one answer asks its members, at least and at most."""

    policy: CouncilSpec
    quoter: Quoter
    quoting: Quoting
    longest: Callable[[str], int]  # tokens that an agent may write, by its name
    mode: Mode

    def load(self, short: Callable[[], str], long: Callable[[], str]) -> Load:
        """Add up the calls of one council, which are asked about a short answer, or about the longest."""
        found, rounds = Load(), self.policy.min_rounds
        for member in self.policy.members:
            if not self.quoter.wants(member.name):
                found = found.plus(Load(calls=2 * rounds, most_calls=2 * rounds))
                continue
            most = least = list(self._asked(member, short(), rounds, length=1))
            if self.quoting is Quoting.ALL:
                most = list(self._asked(member, long(), self.policy.rounds, length=self.longest(member.name)))
            found = found.plus(self.quoter.load(member.name, least, most, len(least), self.mode))
        return found

    def _asked(self, member: CouncilMember, question: str, rounds: int, *, length: int) -> Iterator[Request]:
        """Yield the requests of a member; at worst all rounds are held, and every answer is repaired."""
        council = Council(question=question, members=self.policy.members, rounds=self.policy.rounds, seed=0)
        written = "x" * (length * BYTES_PER_TOKEN)
        past: Sequence[CouncilRound] = ()
        for _ in range(rounds):
            this = _round(council, len(past) + 1, written)
            for turn in (propose_turn(council, member, past), evaluate_turn(council, member, this.proposals, past)):
                request = request_of(turn)
                yield request
                if length > 1:
                    yield repair_of(request, written, _WHY)
            past = (*past, this)


def _round(council: Council, number: int, written: str) -> CouncilRound:
    proposals = tuple(Proposal(agent=name, text=written) for name in council.names)
    evaluations = tuple(
        Evaluation(
            agent=name,
            votes=tuple(Vote(target=other, weight=1, critique=_CRITIQUE) for other in council.names if other != name),
        )
        for name in council.names
    )
    score = score_round(proposals, evaluations, seed=council.seed)
    return CouncilRound(number=number, proposals=proposals, evaluations=evaluations, abstentions=(), score=score)


def policy_of(spec: SuiteSpec) -> CouncilSpec:
    """Return the council of a suite run; no question is put to it yet."""
    return read_spec({**(spec.council or {}), _QUESTION: _PLACEHOLDER})
