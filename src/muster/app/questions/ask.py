"""One question to one agent, durably: checked before anything is stored. The workload `ask`, and `Muster.ask`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.app.agent_kinds.directory import Agents
from muster.app.base.schemas import JsonSchemas
from muster.app.kinds.question import QUESTION
from muster.app.kinds.question_order import QuestionFields, QuestionOrder
from muster.app.runs.details import RunBatches
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import RunOptions
from muster.app.runs.questions import OpenQuestion
from muster.app.runs.runs import Runs
from muster.domain.call import Message, Quality, Reply, Request, Role, message, without_data
from muster.domain.canonical import Json
from muster.domain.dispatch import Mode
from muster.domain.effort import with_effort
from muster.domain.errors import BadArgument, BadConfiguration, NotFound
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.ids import RunId
from muster.domain.media import Media
from muster.domain.order import field_flaws, given_by
from muster.domain.run import Run
from muster.engine.context import Context
from muster.engine.drive import Listener
from muster.engine.workload import workload
from muster.text import typed
from muster.text.declared_values import read_value
from muster.text.schemas.guard import in_schema_thread
from muster.text.schemas.json_schema import bounded_schema_flaw

WORKLOAD = QUESTION.workload
KEY = "ask"  # of the one call in the journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(QuestionFields):
    """What is asked of whom, after the `messages` of a conversation; `stream` asks for text while it is written.

    With images or documents the `content` has them where they belong, and the `prompt` is the text of it.
    """

    prompt: str = field()
    schema: Any = None
    stream: bool = False
    messages: tuple[Message, ...] = ()
    content: tuple[str | Media, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what nobody can be asked."""
        flaws = list(field_flaws(self))
        texts: dict[str, Json] = {"agent": self.agent, "prompt": self.prompt, "system": self.system}
        broken = [name for name, text in texts.items() if isinstance(text, str) and not is_text(text)]
        flaws += [FieldFlaw(path=name, message="is not UTF-8") for name in broken]
        if texts["prompt"] is None or (not flaws and not self.prompt.strip()):
            flaws.append(FieldFlaw(path="prompt", message="is empty", code=FlawCode.OUT_OF_BOUNDS))
        if flaws:
            is_value = any(not isinstance(text, str) for text in texts.values())
            raise BadArgument.of(flaws, suggestions=("write values as text: json.dumps(…)",) if is_value else ())
        given: tuple[object, ...] = self.messages
        wrong = next((one for one in given if not isinstance(one, Message)), None)
        if wrong is not None:
            way = 'write muster.Message(role=muster.Role.USER, text="…")'
            raise BadArgument(f"must be of muster.Message, not {wrong!r}", argument="messages", suggestions=(way,))
        self.request()

    def request(self) -> Request:
        """Return the request to the agent."""
        asked = Message(role=Role.USER, text=self.prompt, content=self.content or None)
        return Request(
            messages=(*self.messages, asked),
            system=self.system,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            seed=self.seed,
            schema=self.schema,
        )

    def spec(self) -> Json:
        """Return the spec of its run."""
        names = ("agent", "prompt", "system", "max_tokens", "temperature", "seed", "stream")
        spec = {name: getattr(self, name) for name in names}
        said: dict[str, Json] = {}
        if self.messages:
            said["messages"] = typed.to_builtins(without_data(self.messages))
        if self.content:
            said["content"] = typed.to_builtins(without_data(self.request().messages)[-1].parts)
        return spec | said if self.schema is None else spec | said | {"schema": self.schema}


def question_of(order: QuestionOrder, *, stream: bool = False) -> Question:
    """Return the question that was ordered."""
    agent = with_effort(order.agent, order.model_effort)
    given = given_by(QuestionFields, order) | {"agent": agent}
    question = Question(**given, schema=order.output_schema, stream=stream)
    return replace(question, content=(*_shown(order.files), question.prompt)) if order.files else question


def _shown(files: Sequence[Path]) -> tuple[Media, ...]:
    """Return the images and documents in some files."""
    from muster.app.base.media import media_file  # with the readers of files, which few questions need

    return tuple(map(media_file, files))


def parts_of(prompt: str | Sequence[str | Media]) -> tuple[str, tuple[str | Media, ...]]:
    """Return the text of a prompt, and its parts where it has images and documents in it."""
    if isinstance(prompt, str) or not isinstance(prompt, list | tuple):
        return prompt, ()  # type: ignore[return-value]  # of another type it is refused by the question
    said = message(*prompt)
    return said.text, said.parts


def read_question(spec: Any) -> Question:
    """Return the question that a spec holds; raises BadArgument, with everything that is wrong, for any other."""
    given = {name: value for name, value in spec.items() if value is not None} if isinstance(spec, Mapping) else spec
    if isinstance(given, Mapping) and given.keys() <= Question.__dataclass_fields__.keys():
        with suppress(typed.ValidationError, BadArgument):  # all that is wrong is looked for where something is
            return typed.convert(given, Question)
    return read_value(given, Question, about="not a valid spec of a question")


@workload(WORKLOAD, check=read_question)
async def ask(ctx: Context, spec: Any) -> Json:
    """Ask, and return the text with how it ended."""
    question = read_question(spec)
    reply = await ctx.call(question.agent, question.request(), key=KEY, stream=question.stream)
    return {"text": reply.text, "quality": str(reply.quality_given(())), "stop": str(reply.stop), "model": reply.model}


def is_text(text: str) -> bool:
    """Return whether a text can be written as UTF-8: half of a surrogate pair cannot."""
    try:
        text.encode("utf-8")
    except UnicodeError:
        return False
    return True


async def start_question(
    agents: Agents,
    runs: Runs,
    question: Question,
    options: RunOptions,
    *,
    detach: bool = False,
    on_delta: Listener | None = None,
) -> RunHandle:
    """Start the run of a question; raises before anything is stored when it cannot be answered."""
    if question.schema is not None:
        await JsonSchemas().require(question.schema)
    _require_agent(agents, question, options)
    options = replace(options, media=question.request().media)
    return await runs.start_checked(WORKLOAD, question.spec(), options, detach=detach, on_delta=on_delta)


async def submit_question(agents: Agents, runs: Runs, question: Question, options: RunOptions) -> RunHandle:
    """Store the run of a question for the workers; raises before that when it cannot be answered."""
    if question.schema is not None:  # it may come over a network and be large
        wrong = await in_schema_thread(bounded_schema_flaw, question.schema)
        if wrong:
            raise BadArgument(wrong, argument="schema")
    _require_agent(agents, question, options)
    return await runs.submit(WORKLOAD, question.spec(), replace(options, media=question.request().media))


def _require_agent(agents: Agents, question: Question, options: RunOptions) -> None:
    """Raise what would keep the agent from answering, as a flaw of its field."""
    try:
        agents.require(question.agent, question.request(), options.dispatch)
    except BadConfiguration as error:
        way = str(next(iter(error.suggestions), ""))
        error.flaws = (FieldFlaw(path="agent", message=error.message, suggestion=way, by_itself=True),)
        raise


FLAWS = {
    Quality.CUT: "the answer was cut: it reached the maximum number of tokens (--max-tokens)",
    Quality.REFUSED: "the agent refused to answer",
    Quality.EMPTY: "the answer is empty",
    Quality.UNFINISHED: (
        "the answer may be incomplete: its finish_reason is missing, an error, unknown, "
        "or names tools that it did not call"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOutcome:
    """What became of a question: a reply, or a run that waits for a batch or a person."""

    run: Run
    reply: Reply | None  # None: it waits in a batch, or for a person
    batches: RunBatches
    workers: int = 0
    questions: tuple[OpenQuestion, ...] = ()  # that it waits for people to answer

    @property
    def quality(self) -> Quality | None:
        """The quality of the reply to a question, with which no tools are declared."""
        return None if self.reply is None else self.reply.quality_given(())

    @property
    def flaw(self) -> str | None:
        """What is wrong with the reply; None for a good one."""
        return None if self.quality is None else FLAWS.get(self.quality)

    @property
    def error(self) -> Mapping[str, Json] | None:
        """Why this is not a success: more was spent than allowed, or the reply is not good."""
        if self.run.overdraft is not None or self.flaw is None:
            return self.run.overdraft
        return {"code": str(self.quality), "message": self.flaw, "suggestions": []}


async def outcome_of_question(runs: Runs, run: Run) -> AskOutcome:
    """Return what became of the question of a run."""
    batches = await runs.batches_of(run.id, flex=True) if run.dispatch.mode is not Mode.LIVE else RunBatches()
    if run.is_detached:
        questions = tuple(await runs.questions(run.id))
        return AskOutcome(run=run, reply=None, batches=batches, workers=await runs.workers(), questions=questions)
    return AskOutcome(run=run, reply=await answer_of(runs, run.id), batches=batches)


async def answer_of(runs: Runs, run: RunId) -> Reply:
    """Return the reply to the question of a run."""
    entry = await runs.entry(run, KEY)
    if entry is None or entry.reply is None:
        raise NotFound(f"run {run} has no reply")
    return entry.reply
