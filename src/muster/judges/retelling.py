"""What a judge or a command said about an answer, told again from its recorded replies. Pure.

What a judge said can be read without asking anybody. So reports, which never ask, may use this module and no other of
this room: evidence shows with it that judgements are what the replies say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.domain.agent import Command
from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.case import Case
from muster.domain.errors import BadOutput, RecordedFailure
from muster.domain.money import NOTHING, Microdollars
from muster.domain.verdict import Judgement, Observation
from muster.judges.combining import Sample, combine
from muster.judges.command_answer import failed, read_answer
from muster.judges.failures import code_of, words_of
from muster.judges.question import VERSION, Question, pose, rubric_of
from muster.judges.reading import Reading, read


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A call to a judge as it was recorded: with a reply, or with the failure that took its place."""

    reply: Reply | None = None
    error: Mapping[str, Json] | None = None


Calls = Mapping[str, Heard]  # by key

NOT_RECORDED = Heard(error={"code": "not_recorded", "message": "its call is not recorded"})


def retell_judge(
    case: Case,
    observation: Observation,
    calls: Calls,
    *,
    judge: str | None,
    samples: int,
    key: str,
    threshold: float,
) -> Judgement:
    """Give the judgement that the recorded replies of a judge come to, as if it had been asked just now."""
    if judge is None:
        return Judgement(by="", failures=("this case wants a judge, and none was named",))
    if why := missing(case, observation):
        return Judgement(by=judge, version=VERSION, samples=samples, failures=(why,))
    question = pose(case, observation)
    told = [_sample(question, judge, one, calls) for one in keys_of(key, judge, samples)]
    return combine(judge, question.rubric, told, threshold if case.threshold is None else case.threshold)


def retell_command(case: Case, calls: Calls, *, key: str) -> Judgement:
    """Give the judgement that the recorded answer of a case's command comes to."""
    if not case.process:
        return failed("", "the case names no command: give it process_cmd")
    name, place = Command(argv=case.process).name, f"{key}/process"
    heard = calls.get(place, NOT_RECORDED)
    if heard.reply is None:
        return failed(name, f"the command gave no verdict: {words_of(_failure(heard))}", place)
    return read_answer(case, name, heard.reply, place)


def keys_of(key: str, judge: str, samples: int) -> list[str]:
    """Name the first call of every sample."""
    return [f"{key}/judge/{judge}/{number}" for number in range(1, samples + 1)]


def flaw_of(heard: Heard, question: Question) -> str:
    """Say what is to be repaired in a reply; nothing when it is good, or when there is none."""
    return "" if _is_lost(heard) else _reading(heard, question).flaw


def missing(case: Case, observation: Observation) -> str:
    """Say what keeps a judge from being asked at all."""
    if not rubric_of(case):
        return "the case has no rubric, no description and no judge_prompt: there is nothing to judge by"
    return "" if observation.answers else "there is no answer to judge"


def _sample(question: Question, judge: str, key: str, calls: Calls) -> Sample:
    """Tell one sample again: its first reply, and the repair when that one has a flaw."""
    replies: list[Reply | None] = []
    keys: tuple[str, ...] = ()
    reading = Reading()
    for place in (key, f"{key}/repair"):
        heard, keys = calls.get(place, NOT_RECORDED), (*keys, place)
        if _is_lost(heard):
            return _told(replies, keys, failure=f"the judge {judge} gave no reply: {words_of(_failure(heard))}")
        replies.append(heard.reply)
        reading = _reading(heard, question)
        if not reading.flaw:
            break
    failure = "" if reading.verdicts else f"the judge's reply cannot be used, after a repair too: {reading.flaw}"
    return _told(replies, keys, reading, failure)


def _told(
    replies: Sequence[Reply | None], keys: tuple[str, ...], reading: Reading | None = None, failure: str = ""
) -> Sample:
    given = [reply for reply in replies if reply is not None]
    return Sample(
        verdicts=() if reading is None else reading.verdicts,
        failure=failure,
        model=given[-1].model if given else "",
        cost=Microdollars(sum((reply.cost for reply in given), NOTHING)),
        keys=keys,
    )


def _is_lost(heard: Heard) -> bool:
    """Whether a call brought nothing; an answer in no shape is a reply that can be repaired like any other."""
    return heard.reply is None and code_of(_failure(heard)) != BadOutput.code


def _reading(heard: Heard, question: Question) -> Reading:
    return Reading(flaw=words_of(_failure(heard))) if heard.reply is None else read(heard.reply, question)


def _failure(heard: Heard) -> RecordedFailure:
    return RecordedFailure((heard.error or NOT_RECORDED.error) or {})
