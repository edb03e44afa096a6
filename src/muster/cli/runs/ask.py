"""`muster ask`: one question to one agent; standard output holds the answer and nothing else."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.app import Muster
from muster.app.kinds import QUESTION
from muster.app.kinds.question_order import QuestionOrder
from muster.app.questions.ask import AskOutcome, Question, question_of
from muster.app.runs.handle import RunHandle
from muster.app.views.calls import NO_THINKING, thought_of
from muster.app.views.runs import AskView, ask_view
from muster.cli.drive import drive
from muster.cli.options import filled, require_sendable
from muster.cli.runs.options import AskArguments
from muster.cli.session import with_muster
from muster.cli.terminal.display import Display, SilentDisplay, display
from muster.cli.terminal.output import CommonOptions, answer, clean, fail_with, note, quote_log, warn, write_to
from muster.cli.terminal.runs import run_cost, saving_words, tokens_line, tool_line
from muster.cli.terminal.stream import AnswerWriter
from muster.domain.call import Reply
from muster.domain.dispatch import Mode
from muster.domain.entry import Event
from muster.text.words import seconds_of


def ask(common: CommonOptions, arguments: AskArguments) -> int:
    """Ask one question and print the answer."""
    given, patience, detach = arguments.order, arguments.patience, arguments.detach
    require_sendable(given, patience, detach=detach)
    order = filled(given, QUESTION)
    batch = order.dispatch is Mode.BATCH
    asked = AskedQuestion(
        question=question_of(order, stream=sys.stdout.isatty() and not common.json and not batch),
        order=order,
        detach=detach,
        tells=not common.quiet and not common.json,
        prompts=sys.stdin is not None and sys.stdin.isatty(),
    )

    async def work(muster: Muster) -> "AskOutcome":
        return await carry_out(muster, asked, display(common, stays=False) if batch else SilentDisplay())

    found = with_muster(common, work, allow_unpriced=arguments.allow_unpriced, patience=patience, create=True)
    return conclude(common, found, printed=asked.question.stream, thinking=arguments.show_thinking)


def conclude(common: CommonOptions, found: AskOutcome, *, printed: bool, thinking: bool = False) -> int:
    """Print what is left to print; a reply that is not good, or cost more than it may, makes the exit code 1."""
    if found.reply is None:
        from muster.cli.outcome import leave  # with rich and all of reports, which an answer does without

        return leave(common, found.run, found.batches, found.workers, found.questions)
    if common.json:
        return _answer_json(common, ask_view(found, found.reply, thinking=thinking), found)
    if not printed:
        text = found.reply.text
        write_to(sys.stdout, text if text.endswith("\n") else text + "\n")
    if thinking:
        for line in clean(thought_of(found.reply) or NO_THINKING).splitlines():
            warn(f"thought: {line}")
    if found.flaw is not None:
        warn(f"warning: {found.flaw}")
    if not common.quiet:
        _tell_trace(found.reply)
    note(common, _footer(found, found.reply))
    if found.run.overdraft is not None:
        return fail_with(common, found.run.overdraft, 1)
    return 0 if found.flaw is None else 1


def _answer_json(common: CommonOptions, data: AskView, found: AskOutcome) -> int:
    if found.error is not None:
        return fail_with(common, found.error, 1, data)
    answer(common, data, lambda console: None)
    return 0


def _tell_trace(reply: Reply) -> None:
    """Print what an agent that is a program did besides answering."""
    for call in reply.tool_calls:
        warn(f"used {tool_line(call)}")
    if reply.trace is not None:
        quote_log(reply.trace.log)
        if reply.trace.note:
            warn(f"note: {reply.trace.note}")


def _footer(found: AskOutcome, reply: Reply) -> str:
    parts = [
        reply.model or str(found.run.spec["agent"]),
        tokens_line(reply),
        run_cost(found.run),
        saving_words(found.batches),
        f"{reply.timings.shown:.1f} s",
        f"run {found.run.id}",
    ]
    return " · ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question, and how it is put."""

    question: Question
    order: QuestionOrder
    detach: bool
    tells: bool = True  # why it takes long, on standard error
    prompts: bool = False  # a person who is asked sits at this terminal


async def carry_out(muster: Muster, asked: AskedQuestion, display: Display) -> AskOutcome:
    """Ask, and return the run with the reply; detached, without one."""
    question = asked.question
    writer = AnswerWriter(muster.settings.secrets) if question.stream else None
    options = muster.runs.ordered(asked.order)
    handle = await muster.start_question(question, options, detach=asked.detach, on_delta=writer)
    live = options.dispatch.mode is Mode.BATCH and not muster.agents.has_batches(question.agent)
    if live and asked.tells and not muster.agents.is_person(question.agent):
        warn(f"{question.agent} has no batch API; it is called live")
    watching = asyncio.ensure_future(_watch_retries(handle, writer, asked))
    try:
        run = await drive(muster, handle, display, prompts=asked.prompts, notes=asked.tells)
    finally:
        watching.cancel()
        if writer is not None:
            writer.break_line()
    outcome = await muster.outcome_of_question(run)
    if writer is not None and outcome.reply is not None:
        writer.finish(outcome.reply.text)
    return outcome


async def _watch_retries(handle: RunHandle, writer: AnswerWriter | None, asked: AskedQuestion) -> None:
    failed = False
    async for event in handle.events():
        if event.kind == "call.retry" and writer is not None:
            writer.start_over()
        if asked.tells and (event.kind == "call.retry" or (failed and event.kind == "batch.planned")):
            warn(retry_words(event))
        failed = failed or event.kind == "call.retry"


def retry_words(event: Event) -> str:
    """Return why an attempt failed and when the next one is; that another batch follows is known when it is planned."""
    if event.kind == "batch.planned":
        return f"trying again in another batch, {event.data['batch']}"
    data: Mapping[str, Any] = event.data
    message = f"attempt {data['attempt']}: {clean(str(data['error']['message']))}"
    again_in = data["again_in"]
    return f"{message}; trying again in {seconds_of(again_in)}" if again_in else message
