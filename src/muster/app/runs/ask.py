"""One question to one agent, durably: checked before anything is stored. The workload `ask`, and `Muster.ask`."""

from dataclasses import dataclass
from typing import Any

from muster.app.agent_kinds.directory import Agents
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import RunOptions
from muster.app.runs.runs import Runs
from muster.domain.call import Message, Reply, Request, Role
from muster.domain.canonical import Json
from muster.domain.errors import NotFound
from muster.domain.ids import RunId
from muster.engine.context import Context
from muster.engine.drive import Listener
from muster.engine.workload import workload
from muster.text.json_schema import JsonSchemas

KEY = "ask"  # of the one call in the journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of whom; `stream` asks for the answer while it is written."""

    agent: str
    prompt: str
    system: str = ""
    schema: Json = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    stream: bool = False

    def request(self) -> Request:
        """Return the request to the agent."""
        return Request(
            messages=(Message(role=Role.USER, text=self.prompt),),
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
        return spec if self.schema is None else spec | {"schema": self.schema}


@workload("ask")
async def ask(ctx: Context, spec: Any) -> Json:
    """Ask, and return the text with how it ended."""
    known = {name: spec[name] for name in Question.__dataclass_fields__ if spec.get(name) is not None}
    question = Question(**known)
    reply = await ctx.call(question.agent, question.request(), key=KEY, stream=question.stream)
    return {"text": reply.text, "quality": str(reply.quality_given(())), "stop": str(reply.stop), "model": reply.model}


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
        JsonSchemas().require(question.schema)
    agents.require(question.agent, question.request(), options.dispatch)
    return await runs.start("ask", question.spec(), options, detach=detach, on_delta=on_delta)


async def answer_of(runs: Runs, run: RunId) -> Reply:
    """Return the reply to the question of a run."""
    entry = await runs.entry(run, KEY)
    if entry is None or entry.reply is None:
        raise NotFound(f"run {run} has no reply")
    return entry.reply
