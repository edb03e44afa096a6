"""The command of the user's that judges: run through the context, so that it is owned, timed and journaled."""

from muster.domain.agent import Command
from muster.domain.case import Case
from muster.domain.verdict import Judgement, Observation
from muster.engine.context import Context
from muster.judges.command_answer import failed, question_for, read_answer
from muster.judges.failures import FAILED_CALL, words_of

SECONDS = 60.0  # where the case names no time


async def ask_command(ctx: Context, case: Case, observation: Observation, *, key: str) -> Judgement:
    """Have an answer judged by the case's command; its failure is a value, what stops the run passes through."""
    command = Command(argv=case.process, folder=case.process_folder or ".", environment=dict(case.environment))
    if not case.process:
        return failed("", "the case names no command: give it process_cmd")
    place = f"{key}/process"
    try:
        reply = await ctx.call(command, question_for(case, observation), key=place, timeout=case.timeout or SECONDS)
    except FAILED_CALL as error:
        return failed(command.name, f"the command gave no verdict: {words_of(error)}", place)
    return read_answer(case, command.name, reply, place)
