"""What is decided about runs of single questions."""

from collections.abc import Mapping

from muster.app.agent_kinds.directory import Agents
from muster.app.base.backend import Backend
from muster.app.questions.ask import answer_of, outcome_of_question, read_question
from muster.app.runs.kind_part import KindPart
from muster.app.runs.runs import Runs
from muster.domain.canonical import Json
from muster.domain.dispatch import Dispatch
from muster.domain.run import Run, RunState


class Questions(KindPart):
    """Single questions: refused when nobody could answer; a reply that was cut is no success."""

    def __init__(self, backend: Backend, runs: Runs, agents: Agents) -> None:
        self._directory, self._runs, self._agents = backend.directory, runs, agents

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise for an unknown agent, and for one without a key if it is asked here."""
        question = read_question(spec)
        if here:
            self._agents.require(question.agent, question.request(), dispatch)
        else:
            self._directory.find(question.agent)

    async def error_of(self, run: Run) -> Mapping[str, Json] | None:
        """Return what is wrong with the reply; None for a good one."""
        return (await outcome_of_question(self._runs, run)).error

    async def output(self, run: Run) -> str:
        """Return the text of the reply."""
        if run.state is not RunState.COMPLETED:
            return await super().output(run)
        return (await answer_of(self._runs, run.id)).text
