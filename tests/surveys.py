"""A kind of work with no code for any door: several agents are asked one question, and equal answers are counted."""

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

import muster
from muster.domain.canonical import Json
from muster.domain.doors import LOCAL
from muster.domain.kind import WorkKind
from muster.domain.order import FieldForm, Name, OrderField, Text
from muster.domain.run_order import LimitedRunOrder


@dataclass(frozen=True, kw_only=True)
class SurveyOrder(LimitedRunOrder):
    """One question to several agents."""

    question: Annotated[
        Text, OrderField(help="The question.", tool="The whole question.", argument=True, metavar="QUESTION")
    ]
    agents: Annotated[
        tuple[Name, ...],
        OrderField(
            help="An agent that is asked; repeatable.",
            tool="Who is asked.",
            form=FieldForm.AGENT,
            option=("--agent",),
            metavar="A",
            min_length=1,
            max_length=5,
        ),
    ]
    repeats: Annotated[
        int, OrderField(help="How often each is asked.", tool="How often each is asked.", min=1, max=3)
    ] = 1
    notes: Annotated[
        str | None,
        OrderField(help="A file for notes.", form=FieldForm.PATH, doors=LOCAL, metavar="FILE", shown="none"),
    ] = None


@muster.workload("quick_survey")
async def survey(ctx: muster.Context, spec: Any) -> Json:
    """Ask all agents, and count their answers."""
    asked = [f"{agent} {number}" for agent in spec["agents"] for number in range(spec["repeats"])]

    async def answer(one: str) -> str:
        return (await ctx.call(one.split()[0], spec["question"], key=one)).text

    return {"answers": dict(Counter([await answer(one) for one in asked]))}


def spec_of_survey(order: SurveyOrder) -> Json:
    """Return the spec of a survey."""
    return {"question": order.question, "agents": list(order.agents), "repeats": order.repeats}


SURVEY = WorkKind(
    workload="quick_survey",
    word="quick survey",
    about="Ask several agents one question and count the answers.",
    module="tests.surveys",
    command="muster survey",
    order="tests.surveys:SurveyOrder",
    spec_of=spec_of_survey,
)
