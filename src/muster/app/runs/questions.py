"""What runs ask people, and the answers: which questions are open, and an answer checked before it is sent, once."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.domain.call import says_something
from muster.domain.canonical import Json
from muster.domain.entry import Entry, NewSignal, SentAnswer, answer_channel
from muster.domain.errors import BadArgument, BadOutput, Conflict, MusterError, NotFound, state_verb
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run
from muster.store.base import Store
from muster.text.json_documents import find_value
from muster.text.schemas.guard import in_schema_thread
from muster.text.schemas.json_schema import fitting

MAX_ANSWER = 100_000  # characters
MAX_NAMED = 10  # questions in an error
_SPOKEN_BY = {"assistant": "You", "tool": "Tool", "system": "System"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A call that waits for the answer of a person."""

    run: RunId  # the one that asks, which may be below the run that was started
    key: str
    agent: str
    request: Mapping[str, Any]
    asked_at: float

    @property
    def prompt(self) -> str:
        """What the person is asked: the system prompt, and the conversation with who said what if it has turns."""
        system, texts = self.request.get("system"), [message["text"] for message in self.request["messages"]]
        flaw = self._context.get("repair")
        if flaw:  # the last two messages are the answer and what is wrong with it, in words for a model
            before = "\n".join(f"> {line}".rstrip() for line in texts[-2].splitlines())
            texts = [*texts[:-2], f"You answered:\n\n{before}", f"This cannot be used: {flaw}\n\nPlease answer again."]
        elif len(texts) > 1:
            roles = [_SPOKEN_BY.get(message["role"], "User") for message in self.request["messages"]]
            texts = [f"{role}: {text}" for role, text in zip(roles, texts, strict=True)]
        return "\n\n".join([*([system] if system else []), *texts])

    @property
    def candidates(self) -> tuple[str, ...]:
        """The labels of what the person is to weigh in a council; none where something else is asked."""
        weighs = self._context.get("phase") == "evaluate"
        return tuple(one["id"] for one in self._context.get("candidates", ())) if weighs else ()

    @property
    def _context(self) -> Mapping[str, Any]:
        return self.request.get("context") or {}

    @property
    def schema(self) -> Mapping[str, Json] | None:
        """The JSON Schema that the answer must fit."""
        return self.request.get("schema")

    @property
    def command(self) -> str:
        """The command that answers it."""
        return f"muster answer {self.run} --call {shlex.quote(self.key)} TEXT"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOutcome:
    """An answer that is stored, and the run that goes on with it."""

    sent: SentAnswer
    root: Run  # which is driven, and has the call or a run below it that has
    workers: int  # that are alive

    @property
    def goes_on(self) -> bool:
        """Return whether the run continues automatically: a process drives it, or will."""
        return self.root.is_driven or self.root.state in TERMINAL or (self.root.submitted and self.workers > 0)


def question_of(entry: Entry) -> OpenQuestion:
    """Return an open call as a question."""
    return OpenQuestion(
        run=entry.run, key=entry.key, agent=entry.agent or "", request=entry.request, asked_at=entry.opened_at
    )


async def questions_of(store: Store, run: Run) -> tuple[OpenQuestion, ...]:
    """Return what a run and those below it wait for people to answer, the oldest first."""
    if run.state in TERMINAL:
        return ()
    return tuple(question_of(entry) for entry in await store.questions.unanswered(run.id))


async def send_answer(
    store: Store, run: Run, text: str, *, key: str | None, sender: str, client_id: str, at: float
) -> SentAnswer:
    """Send the answer to an open question of a run; raises before that when it cannot be one.

    One that was sent before under the same client id is for the same question, whatever became of it.
    """
    require_answer(text)

    async def send(asking: Run, key: str) -> SentAnswer:
        answer = NewSignal(
            address=asking.lineage_level,
            channel=answer_channel(key),
            payload={"text": text},
            client_id=client_id,
            sender=sender,
            at=at,
        )
        return SentAnswer(run=asking.id, key=key, signal=await store.questions.answer(asking.id, key, answer))

    known = await store.questions.sent(run.id, client_id)
    if known is None:
        try:
            return await send(*await _chosen(store, run, text, key))
        except MusterError:  # the question may not be open any more because this very answer was sent meanwhile
            known = await store.questions.sent(run.id, client_id)
            if known is None:
                raise
    return await send(await store.runs.get(known.run) or run, key or known.key)  # the store compares the two


async def root_of(store: Store, run: RunId) -> Run:
    """Return the run that a run was started by, at the top; itself when it was started by itself."""
    found = await store.runs.get(run)
    while found is not None and found.parent is not None:
        found = await store.runs.get(found.parent)
    if found is None:
        raise NotFound(f"run {run} not found")
    return found


def require_answer(text: str) -> None:
    """Raise BadArgument for a text that cannot be an answer: empty, too long, or not Unicode."""
    if not isinstance(text, str):
        raise BadArgument(f"an answer must be a string, not {type(text).__name__}")
    if len(text) > MAX_ANSWER:
        raise BadArgument(f"the answer has {len(text):,} characters; the maximum is {MAX_ANSWER:,}")
    try:
        text.encode("utf-8")
    except UnicodeError:
        raise BadArgument("the answer is not UTF-8") from None
    if not says_something(text):
        raise BadArgument("the answer is empty")


async def _chosen(store: Store, run: Run, text: str, key: str | None) -> tuple[Run, str]:
    """Return the run and the key of the only open question that is meant, whose schema the text fits."""
    found = await questions_of(store, run)
    meant = [one for one in found if key is None or one.key == key]
    if len(meant) > 1:
        ways = tuple(one.command for one in meant[:MAX_NAMED])
        words = f"run {run.id} waits for {len(meant)} answers" + (f" under the key {key!r}" if key else "")
        raise BadArgument(f"{words}; choose the question to answer", suggestions=ways)
    if not meant and key is None:
        how = state_verb(run.state) if run.state in TERMINAL else f"is {run.state}"
        raise Conflict(
            f"run {run.id} {how} and is not waiting for an answer", suggestions=(f"muster runs show {run.id}",)
        )
    if not meant:
        return run, key or ""  # the store says in which state that call is
    await in_schema_thread(_require_fit, meant[0], text)
    asking = run if meant[0].run == run.id else await store.runs.get(meant[0].run)
    return asking or run, meant[0].key


def _require_fit(question: OpenQuestion, text: str) -> None:
    if question.schema is None:
        return
    try:
        fitting(find_value(text, question.schema), question.schema)
    except BadOutput as error:
        raise BadArgument(
            f"the answer to {question.key!r} was not sent: {error.message}",
            suggestions=(f"muster runs show {question.run} --call {shlex.quote(question.key)} --json",),
        ) from None
