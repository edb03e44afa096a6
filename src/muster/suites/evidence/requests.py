"""Whether recorded requests are those that the cases ask: a reply counts as the answer to its own question. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from muster.domain.agent import Command
from muster.domain.call import Message, Reply, Request, Role
from muster.domain.canonical import Json
from muster.judging.asked import request_flaw
from muster.suites.cases import Unit
from muster.suites.checks.tool_calls import use, wants_tools
from muster.suites.conversation import request_of
from muster.suites.evidence.archive import EvidenceArchive, read_as
from muster.suites.evidence.layout import CALLS
from muster.suites.journal import SuiteSnapshot, case_key
from muster.suites.judge.command import question_for
from muster.suites.judge.question import JudgeQuestion, pose, pose_again
from muster.suites.judge.rubric import keys_of, missing
from muster.suites.spec import SuiteSpec
from muster.suites.values.case import Case
from muster.suites.values.verdict import CaseResult, Observation

Call = Mapping[str, Json]  # a line of calls.jsonl
REPAIR = "/repair"


class AskedUnits:
    """The units of a run with the system prompts under which they are asked, as the archive has them."""

    def __init__(self, archive: EvidenceArchive, spec: SuiteSpec, snapshot: SuiteSnapshot) -> None:
        self._spec, self._snapshot = spec, snapshot
        self._prompts = {prompt.name: archive.text(prompt.text) for prompt in snapshot.prompts}
        self._beside = {suite.file: archive.text(suite.prompt) for suite in snapshot.suites if suite.prompt}

    def of(self, case: Case, result: CaseResult) -> Unit | None:
        """Return the unit that a result is about; None when the run has none such."""
        subjects = self._spec.tested_on(case, self._snapshot)
        subject = next((one for one in subjects if one.label == result.subject), None)
        if subject is None:
            return None
        system = self._prompts.get(subject.prompt, "") if subject.prompt else self._beside.get(case.file, "")
        key = case_key(case.id, result.subject, result.epoch)
        return Unit(case=case, subject=subject, epoch=result.epoch, system=system, key=key)


def asked_flaw(unit: Unit, spec: SuiteSpec, calls: Sequence[Call]) -> str:
    """Return which call of the agent was not asked what the case asks, after what was answered before it."""
    messages: tuple[Message, ...] = unit.case.messages
    follow_ups = iter(unit.case.follow_ups)
    for call in calls:
        if flaw := _call_flaw(call, unit.subject.agent, request_of(unit, spec, messages)):
            return f"{flaw}: it does not ask what the case asks"
        if call.get("reply") is None:
            return ""
        reply = read_as(Reply, call["reply"], CALLS)
        messages += tuple(_heard(unit.case, reply, follow_ups))
    return ""


def judged_flaw(case: Case, seen: Observation, spec: SuiteSpec, unit: str, calls: Sequence[Call]) -> str:
    """Return which call of a judge, or of a case's command, is not about the recorded answer."""
    by_key = {str(call.get("key")): call for call in calls}
    command = by_key.pop(f"{unit}/process", None)
    if command is not None and case.process:
        name = Command(argv=case.process).name
        if flaw := _call_flaw(command, name, question_for(case, seen)):
            return f"{flaw}: it is not about the recorded answer"
    if spec.judge is None or spec.judge_file is not None or missing(case, seen):
        return ""
    question = pose(case, seen)
    for key in keys_of(unit, spec.judge, spec.judge_samples):
        if flaw := _sample_flaw(question, spec.judge, key, by_key):
            return f"{flaw}: it is not about the recorded answer"
    return ""


def _sample_flaw(question: JudgeQuestion, judge: str, key: str, calls: Mapping[str, Call]) -> str:
    first, again = calls.get(key), calls.get(key + REPAIR)
    if first is None:
        return ""
    if flaw := _call_flaw(first, judge, question.request):
        return flaw
    reply = None if first.get("reply") is None else read_as(Reply, first["reply"], CALLS)
    asked = pose_again(question, "" if reply is None else reply.text, "")
    return "" if again is None else _call_flaw(again, judge, asked, repairs=True)


def _call_flaw(call: Call, agent: str, asked: Request, *, repairs: bool = False) -> str:
    """Return why a call is not one of this request to this agent."""
    if call.get("agent") != agent:
        return f"{call.get('key')} was asked of {call.get('agent')}, and not of {agent}"
    part = request_flaw(asked, call.get("request"), repairs=repairs)
    return f"the {part} in the request of {call.get('key')} is another" if part else ""


def _heard(case: Case, reply: Reply, follow_ups: Iterator[str]) -> Iterator[Message]:
    """Yield what a conversation goes on with after a reply."""
    if wants_tools(case, reply):
        yield Message(role=Role.ASSISTANT, text=reply.text, tool_calls=reply.tool_calls)
        for tool in reply.tool_calls:
            yield Message(role=Role.TOOL, text=use(case.tools, tool).result or "", tool_call_id=tool.id)
        return
    yield Message(role=Role.ASSISTANT, text=reply.text)
    yield from (Message(role=Role.USER, text=said) for said in [next(follow_ups, None)] if said is not None)
