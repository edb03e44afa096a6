"""Calls with their attempts and replies, and what people are asked and answer."""

from collections.abc import Mapping, Sequence

from muster.app.runs.details import CallDetails
from muster.app.runs.questions import AnswerOutcome, OpenQuestion
from muster.app.views.batches import TokensView
from muster.domain.call import Quality, Reply, Stop, Trace
from muster.domain.canonical import Json
from muster.domain.entry import AttemptState, Entry, EntryState
from muster.domain.money import Lane, to_usd
from muster.domain.run import RunState
from muster.store.base import Attempt
from muster.text.secrets.redaction import redact
from muster.text.views import UNSET, UnsetType, View, asdict, instant, moment


class QuestionView(View):
    """What a person is asked, with the command that answers it; and what is to be weighed, in a council."""

    run: str
    key: str
    agent: str
    prompt: str
    schema: Mapping[str, Json] | None
    asked_at: str
    answer_with: str
    candidates: Sequence[str] | UnsetType = UNSET


class QuestionsView(View):
    """What a run waits for people to answer."""

    questions: Sequence[QuestionView]


class AnswerView(View):
    """An answer that is stored, with the run that goes on with it."""

    run: str
    key: str
    sent_at: str
    root: str
    state: RunState
    goes_on: bool
    workers: int


class EntryView(View):
    """A call, without its text."""

    key: str
    agent: str | None
    state: EntryState
    attempts: int
    quality: Quality | None
    cost_usd: float | None
    seconds: float | None
    opened_at: str
    settled_at: str | None
    reused_from: str | None
    error: Mapping[str, Json] | None


class CallPageView(View):
    """A page of the calls of a run, in their order, without texts."""

    calls: Sequence[EntryView]
    next: str | None


class AttemptView(View):
    """One attempt of a call."""

    n: int
    state: AttemptState
    reserved_usd: float
    cost_usd: float
    lane: Lane
    budget_exceeded: bool
    batch: str | None
    started_at: str
    ended_at: str | None
    error: Mapping[str, Json] | None


class AttemptsView(EntryView):
    """A call with its attempts, without its texts."""

    waited_seconds: float | None
    attempt_list: Sequence[AttemptView]


class AttemptPageView(View):
    """A page of the calls of a run with their attempts, in their order, without texts."""

    calls: Sequence[AttemptsView]
    next: str | None


class ToolCallView(View):
    """One use of a tool, with what it gave when the agent used the tool by itself."""

    id: str
    name: str
    arguments: Mapping[str, Json]
    result: Json
    failed: bool


class ReplyView(View):
    """What an agent answered, with everything that it left behind."""

    text: str
    data: Json
    data_error: str | None
    stop: Stop
    model: str
    tokens: TokensView
    tool_calls: Sequence[ToolCallView]
    lane: Lane
    session: str
    turns: int
    log: str
    note: str
    thinking_tokens: int
    service_tier: str | None
    thinking: str | UnsetType = UNSET


class CallView(AttemptsView):
    """A call with its texts and attempts; texts that persons must not know yet are withheld for those persons."""

    request: Json
    reply: ReplyView | None
    withheld_for: Sequence[str] | UnsetType = UNSET


def question_view(question: OpenQuestion) -> QuestionView:
    """Return what a person is asked."""
    return QuestionView(
        run=question.run,
        key=question.key,
        agent=question.agent,
        prompt=question.prompt,
        schema=question.schema,
        asked_at=instant(question.asked_at),
        answer_with=question.command,
        candidates=question.candidates or UNSET,
    )


def questions_view(questions: Sequence[OpenQuestion]) -> QuestionsView:
    """Return what a run waits for people to answer."""
    return QuestionsView(questions=[question_view(question) for question in questions])


def answer_view(answered: AnswerOutcome) -> AnswerView:
    """Return an answer that is stored, with the run that goes on with it."""
    return AnswerView(
        run=answered.sent.run,
        key=answered.sent.key,
        sent_at=instant(answered.sent.signal.at),
        root=answered.root.id,
        state=answered.root.state,
        goes_on=answered.goes_on,
        workers=answered.workers,
    )


def entry_view(entry: Entry) -> EntryView:
    """Return a call, without its text."""
    reply = entry.reply
    return EntryView(
        key=entry.key,
        agent=entry.agent,
        state=entry.state,
        attempts=entry.attempts,
        quality=None if reply is None else reply.quality,
        cost_usd=None if reply is None or entry.reused_from else to_usd(reply.cost),
        seconds=None if reply is None else round(reply.timings.shown, 3),
        opened_at=instant(entry.opened_at),
        settled_at=moment(entry.settled_at),
        reused_from=entry.reused_from,
        error=entry.error,
    )


def call_page_view(entries: Sequence[Entry], limit: int) -> CallPageView:
    """Return a page of at most so many calls."""
    after = entries[-1].key if len(entries) == limit else None
    return CallPageView(calls=[entry_view(entry) for entry in entries], next=after)


def attempt_page_view(calls: Sequence[CallDetails], limit: int) -> AttemptPageView:
    """Return a page of at most so many calls with their attempts."""
    after = calls[-1].entry.key if len(calls) == limit else None
    return AttemptPageView(calls=[attempts_view(details) for details in calls], next=after)


def attempts_view(details: CallDetails) -> AttemptsView:
    """Return a call with its attempts, without its texts."""
    reply = details.entry.reply
    return AttemptsView(
        **asdict(entry_view(details.entry)),
        waited_seconds=None if reply is None else round(reply.timings.waited, 3),
        attempt_list=[_attempt_view(attempt) for attempt in details.attempts],
    )


def call_view(details: CallDetails, *, thinking: bool = False) -> CallView:
    """Return a call with its texts and attempts; what its model thought only where that is asked for."""
    reply = details.entry.reply
    return CallView(
        **asdict(attempts_view(details)),
        request=details.entry.request,
        reply=None if reply is None else reply_view(reply, thinking=thinking),
    )


def withheld_call_view(details: CallDetails, asked: Sequence[str]) -> CallView:
    """Return a call of a council without its texts, which the persons that it asks must not know yet."""
    return CallView(**asdict(attempts_view(details)), request=None, reply=None, withheld_for=asked)


def _attempt_view(attempt: Attempt) -> AttemptView:
    return AttemptView(
        n=attempt.n,
        state=attempt.state,
        reserved_usd=to_usd(attempt.reserved),
        cost_usd=to_usd(attempt.cost),
        lane=attempt.lane,
        budget_exceeded=attempt.cost > attempt.reserved,
        batch=attempt.batch,
        started_at=instant(attempt.started_at),
        ended_at=moment(attempt.ended_at),
        error=attempt.error,
    )


def reply_view(reply: Reply, *, thinking: bool = False) -> ReplyView:
    """Return a reply with everything an agent left behind."""
    trace = reply.trace or Trace()
    return ReplyView(
        text=reply.text,
        data=reply.data,
        data_error=reply.data_error or None,
        stop=reply.stop,
        model=reply.model,
        tokens=TokensView(input=reply.usage.all_input, output=reply.usage.output),
        tool_calls=[
            ToolCallView(id=use.id, name=use.name, arguments=use.arguments, result=use.result, failed=use.failed)
            for use in reply.tool_calls
        ],
        lane=reply.lane,
        session=trace.session,
        turns=trace.turns,
        log=trace.log,
        note=trace.note,
        thinking_tokens=reply.usage.thinking,
        service_tier=reply.tier or None,
        thinking=thought_of(reply) if thinking else UNSET,
    )


NO_THINKING = "nothing that its provider shows (thinking_display in muster.toml asks for it)"


def thought_of(reply: Reply) -> str:
    """Return what a model said that it thought; many say how much only."""
    return redact(reply.content.thinking).text if reply.content is not None else ""
