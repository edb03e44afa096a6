"""Questions that are requested over a network: to agents of the library."""

from muster.app.muster import Muster
from muster.app.runs.ask import question_of
from muster.app.runs.handle import RunHandle
from muster.app.runs.order import QuestionOrder


async def submit_ask(muster: Muster, order: QuestionOrder) -> RunHandle:
    """Store the run of a question for the workers; raises before that when it cannot be answered."""
    muster.library.require_agents([order.agent])
    return await muster.submit_question(question_of(order), muster.runs.ordered(order))
