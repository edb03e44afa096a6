"""Questions that are requested over a network: to agents of the library."""

from muster.app.kinds.question_order import QuestionOrder
from muster.app.parts.parts import MusterParts
from muster.app.questions.ask import question_of, submit_question
from muster.app.runs.handle import RunHandle
from muster.domain.errors import ErrorCollector
from muster.domain.named import named_agents


async def submit_ask(muster: MusterParts, order: QuestionOrder) -> RunHandle:
    """Store the run of a question for the workers; raises before that when it cannot be answered."""
    checks = ErrorCollector()
    checks.check(muster.library.require_agents, named_agents(order))
    question = checks.finish(question_of, order)
    return await submit_question(muster.agents, muster.runs, question, muster.runs.ordered(order))
