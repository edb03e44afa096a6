"""Answers of a run that have no result yet: the run stopped, or is still at work, before it came to them.

Results are stored in the order of the cases, so a case that waits for its judge holds back those after it. A case that
needs neither a judge nor a command is judged here, as the run will judge it; of the others the money is told.
"""

from dataclasses import replace
from functools import partial
from itertools import count

from muster.domain.call import Reply
from muster.domain.case import Status
from muster.domain.run import RunState
from muster.suites.checks.scoring import all_quick, evaluators_of, score
from muster.suites.checks.tool_calls import quality_in, use, wants_tools
from muster.suites.conversation import Conversation
from muster.suites.journal import case_key
from muster.suites.reports.run import SuiteRun
from muster.suites.values.case import Case, Evaluator
from muster.suites.values.rules import ScoringRules, rules_in
from muster.suites.values.verdict import CaseResult, Observation
from muster.text.schemas.guard import in_schema_thread
from muster.text.words import count as counted

ASKING = frozenset({Evaluator.JUDGE, Evaluator.PROCESS})  # they speak by calls of their own
NOT_JUDGED = "it was answered, and is not judged yet"
MAX_UNANSWERED = 256  # cases without an answer in a row: answers are far from the last results only in batches


class AnsweredCases:
    """Finds the answers of one run that have no result."""

    def __init__(self, suite: SuiteRun) -> None:
        self._suite = suite
        asks = suite.spec.answers is None and suite.run.state is not RunState.COMPLETED
        self._left = MAX_UNANSWERED if asks else 0

    async def find(self, case: Case, subject: str, epoch: int) -> CaseResult | None:
        """Return the result of an answer that is there, `waiting` for one that others judge; None without an answer."""
        if self._left <= 0 or case.skip or case.flaw:
            return None
        replies = await self._replies(case_key(case.id, subject, epoch))
        self._left = MAX_UNANSWERED if replies else self._left - 1
        if not replies:
            return None
        rules = rules_in(self._suite.environment)
        seen = _observed(case, replies, rules)
        evaluators = evaluators_of(case, self._suite.spec.evaluator)
        if len(seen.answers) <= len(case.follow_ups) or ASKING & set(evaluators):
            return _not_judged(case, subject, epoch, seen)
        scoring = partial(
            score,
            case,
            seen,
            subject=subject,
            epoch=epoch,
            evaluators=evaluators,
            default_threshold=self._suite.spec.threshold,
            judgements={},
            rules=rules,
        )
        return scoring() if all_quick(case, seen) else await in_schema_thread(scoring)

    async def _replies(self, key: str) -> dict[str, Reply]:
        """Return the replies to a case by their keys, up to the first call that has none."""
        found: dict[str, Reply] = {}
        for number in count(1):
            place = f"{key}/{number}"
            reply = await self._reply(place)
            if reply is None:
                break
            found[place] = reply
        return found

    async def _reply(self, key: str) -> Reply | None:
        """Return a reply, also of a run that this one continues and has not taken it over from yet."""
        for run in (self._suite.run.id, *self._suite.continues):
            entry = await self._suite.store.journal.find(run, key)
            if entry is not None and entry.reply is not None:
                return entry.reply
        return None


def _observed(case: Case, replies: dict[str, Reply], rules: ScoringRules) -> Observation:
    going = Conversation(messages=case.messages, keys=tuple(replies))
    for reply in replies.values():
        going.hear(reply, quality_in(case, reply, rules))
        if wants_tools(case, reply):
            going.tool_calls += tuple(use(case.tools, call) for call in reply.tool_calls)
        else:
            going.tool_calls += reply.tool_calls
            going.answers += (reply.text,)
    return going.observed()


def is_unfinished(result: CaseResult) -> bool:
    """Return whether an answer that is not judged yet is a conversation in which turns are missing."""
    return result.why != NOT_JUDGED


def _not_judged(case: Case, subject: str, epoch: int, seen: Observation) -> CaseResult:
    answered, turns = len(seen.answers), 1 + len(case.follow_ups)
    why = NOT_JUDGED if answered >= turns else f"{answered:,} of {counted(turns, 'turn')} answered"
    known = CaseResult(case=case.id, subject=subject, epoch=epoch, status=Status.WAITING, why=why)
    return replace(
        known,
        seconds=seen.seconds,
        cost=seen.cost,
        input_tokens=seen.input_tokens,
        output_tokens=seen.output_tokens,
        thinking_tokens=seen.thinking_tokens,
        model=seen.model,
        keys=seen.keys,
    )
