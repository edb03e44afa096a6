"""What tools say about tasks and runs: short, the same for every tool, and with what to do next.

Whatever agents wrote is a value in a JSON document: data, never a part of the instructions.
"""

from collections.abc import Sequence

from muster.app import Muster
from muster.app.kinds import app_kind, kind_of, loaded, word_of
from muster.app.pool.task_queries import Task
from muster.app.runs.questions import OpenQuestion
from muster.app.views.batches import batch_reference, batch_view
from muster.app.views.money import cost_view
from muster.app.views.tasks import WorkView, task_view, work_view
from muster.app.views.verdicts import verdict_of
from muster.domain.batch import Batch
from muster.domain.errors import BudgetExhausted, needs_higher_budget
from muster.domain.money import to_usd
from muster.domain.run import TERMINAL, BudgetedCost, Run, RunState
from muster.domain.task import TaskState
from muster.mcp.sizes import ENVELOPE, MAX_ANSWER, Answer, Pointer, fit_all
from muster.text.views import View, asdict, plain

SHORT_OUTPUT = 500  # characters of an output where many are told of
LONG = frozenset({"prompt", "data", "files", "base", "tags", "steps", "rows", "dissent"})
SHORT_PROMPT = 100  # characters of the prompt of a task: who asks has written it


def pointer_to(id_: str, **more: str) -> Pointer:
    """Return what names the calls that read the fields of a task, a run or a batch; `more` are further arguments."""
    named = "".join(f", {name}={value!r}" for name, value in {"id": id_, **more}.items())[2:]

    def pointer(field: str, offset: int) -> str:
        return f"result({named}{f', field={field!r}' if field else ''}{f', offset={offset}' if offset else ''})"

    return pointer


def compact(answer: Answer) -> Answer:
    """Return an answer without what is empty."""
    return {name: value for name, value in answer.items() if value not in (None, [], {}, "")}


def short_run(run: Run) -> Answer:
    """Return a run in a list."""
    return compact(
        {
            "id": run.id,
            "kind": word_of(run.workload),
            "name": run.name,
            "tags": list(run.tags),
            "state": str(run.state),
            "verdict": None if (verdict := verdict_of(run)) is None else verdict.words,
            **_cost(run.cost),
            "reason": run.ended_reason if run.state in TERMINAL - {RunState.COMPLETED} else None,
        }
    )


def _cost(cost: BudgetedCost) -> Answer:
    """Return what something has cost as every screen has it, without lanes in which there is nothing."""
    lanes = ("imputed_usd", "uncertain_usd", "reserved_usd")
    return {name: value for name, value in asdict(cost_view(cost)).items() if value or name not in lanes}


def picked(view: View, *names: str) -> Answer:
    """Return some parts of a view."""
    shown = plain(view)
    return {name: shown[name] for name in names}


def short_task(task: Task) -> Answer:
    """Return a task in a list."""
    more = {"id": task.id, "state": str(task.state), "slot": task.slot.name if task.slot else None}
    work = picked(work_view(task), "branch", "summary", "changed", "merged_into", "repository_changes")
    return short_run(task.run) | compact({**more, **work, "prompt": _shortened(task.spec.prompt)})


def _shortened(prompt: str) -> str:
    return prompt if len(prompt) <= SHORT_PROMPT else f"{prompt[:SHORT_PROMPT]}…"


def short_batch(batch: Batch) -> Answer:
    """Return a batch in a list."""
    names = ("id", "provider", "state", "requests", "members", "cost_usd", "saving_usd", "note", "waits_for", "next")
    return compact({"kind": "batch", **picked(batch_view(batch), *names)})


async def whole(muster: Muster, run: Run) -> Answer:
    """Return how a run stands, what it came to as far as it has, and what to do next, as much as an answer holds."""
    return (await whole_of_all(muster, [run]))[0]


async def whole_of_all(muster: Muster, runs: Sequence[Run]) -> list[Answer]:
    """Return how several runs stand, as much as one answer holds of all of them."""
    found = [await document(muster, run) for run in runs]
    return fit_all([_listed(one) for one in found], MAX_ANSWER - ENVELOPE, [pointer_to(one["id"]) for one in found])


async def brief_of_all(muster: Muster, runs: Sequence[Run]) -> list[Answer]:
    """Return how several runs stand: what each came to in a few lines, and what to do next."""
    found = [_brief(await document(muster, run)) for run in runs]
    return fit_all(found, MAX_ANSWER - ENVELOPE, [pointer_to(one["id"]) for one in found])


def _brief(found: Answer) -> Answer:
    """Return a document without what is long, and with the beginning of its output."""
    shown = {name: value for name, value in found.items() if name not in LONG}
    if isinstance(output := found.get("output"), str) and len(output) > SHORT_OUTPUT:
        shown["output"] = _beginning(output, found["id"], "output", SHORT_OUTPUT)
    return shown


def _listed(found: Answer) -> Answer:
    """Return a document with little of the prompt: the rest is there for whoever asks for it."""
    if len(prompt := found.get("prompt", "")) <= SHORT_PROMPT:
        return found
    return found | {"prompt": _beginning(prompt, found["id"], "prompt", SHORT_PROMPT)}


def _beginning(text: str, id_: str, field: str, most: int) -> str:
    rest = pointer_to(id_)(f"/{field}", most)
    return f"{text[:most]} [… {len(text) - most:,} characters more: {rest}]"


async def document(muster: Muster, run: Run) -> Answer:
    """Return all that `whole` tells of a run, in full."""
    if kind_of(run).in_slot:
        return await _task(muster, run)
    questions = await muster.runs.questions(run.id)
    found = short_run(run) | await _outcome(muster, run)
    error = run.error or {}
    return compact(
        {
            **found,
            "calls": {"done": run.calls.done, "total": run.calls.total} if run.state not in TERMINAL else None,
            "error": error.get("message"),
            "waits": [] if run.state in TERMINAL else await _waits(muster, run),
            "questions": [_question(one) for one in questions],
            "next": _next(run, questions),
        }
    )


async def _waits(muster: Muster, run: Run) -> list[Answer]:
    """Return the batches that keep a run waiting because they do not get on, why, and what an operator can do."""
    stalled = [batch for batch in await muster.runs.batches_under_way(run.id) if batch.stalled]
    return [picked(batch_reference(batch), "id", "state", "why", "next") for batch in stalled]


async def _task(muster: Muster, run: Run) -> Answer:
    task = await muster.pool.tasks.of(run)
    view = plain(task_view(task))
    names = ("data", "turns", "model", "reason", "permission", "rejection_count", *WorkView.__struct_fields__)
    error = view["error"] or {}
    return compact(
        {
            **short_task(task),
            "prompt": task.spec.prompt,
            "output": view["output"],
            **compact({name: view[name] for name in names}),  # a reason that it has not does not replace another
            "error": error.get("message"),
            "next": await _next_of_task(muster, task),
        }
    )


async def _outcome(muster: Muster, run: Run) -> Answer:
    """Return what is particular to a kind of run; of a kind that has reports, its verdict."""
    if outline := app_kind(run.workload).doors.outline:
        told: Answer = await loaded(outline)(muster, run)
        return told
    if kind_of(run).report is not None and run.state is RunState.COMPLETED:
        report = await muster.report_of(run)
        return {
            "passed": report.ok,
            "verdict": report.summary.verdict,
            "report": f"result(id={run.id!r}, part='report')",
        }
    return {"output": await muster.output_of(run)}


def _question(question: OpenQuestion) -> Answer:
    return compact({"run": question.run, "key": question.key, "asked": question.prompt, "schema": question.schema})


def _next(run: Run, questions: Sequence[OpenQuestion]) -> str:
    """Return what the caller can do about a run now."""
    if questions:
        one = questions[0]
        return (
            f"ask the user: the question is for a person, not for you; then pass on what they say with "
            f"answer_question(id={one.run!r}, key={one.key!r}, text=…)"
        )
    if run.state is RunState.COMPLETED:
        return ""
    if run.state in TERMINAL or run.state is RunState.INTERRUPTED:
        return _resume(run.id, run, "goes on with it; replies it has are not paid for again")
    return f"wait(ids=[{run.id!r}])"


def _resume(id_: str, run: Run, effect: str) -> str:
    """Return how something goes on that has ended; what a budget has stopped needs more of that budget first."""
    if run.ended_reason != BudgetExhausted.code:
        return f"control_run(id={id_!r}, action='resume') {effect}"
    spent = to_usd(run.total.settled)
    if needs_higher_budget(run.ended_reason, run.error):
        more = f"above the {spent} that are spent and enough for what the error says"
        return f"control_run(id={id_!r}, action='resume', budget_usd=a new total, {more}) {effect}"
    return (
        f"no tool can raise the budget that the error names: ask the operator, then "
        f"control_run(id={id_!r}, action='resume') {effect}"
    )


def _next_of_work(task: Task) -> str:
    """Return how the work of a task that is completed is seen and taken."""
    work = work_view(task)
    beside = f"beside its branch there is {'; '.join(work.beside)}" if work.beside else ""
    if not work.changed:
        return beside
    merged = work.merged_into
    take = f"it is merged into {merged}" if merged else f"the operator merges it with: muster task merge {task.id}"
    shown = f"result(id={task.id!r}, part='diff') shows what it changed; {take}"
    return f"{shown}; {beside}" if beside else shown


async def _next_of_task(muster: Muster, task: Task) -> str:
    match task.state:
        case TaskState.PENDING_REVIEW if task.permission is not None:
            return f"it asks for permission: review_task(id={task.id!r}, decision='allow' or 'deny')"
        case TaskState.PENDING_REVIEW:
            return f"review_task(id={task.id!r}, decision='approve', or 'reject' with feedback)"
        case TaskState.COMPLETED:
            return _next_of_work(task)
        case TaskState.FAILED | TaskState.CANCELED:
            return _resume(task.id, task.run, "tries it again")
    if task.refusal:
        return f"it stays pending: {task.refusal}; the operator can run: {task.remedy}"
    if await muster.pool.living_driver() is None:
        return "no process runs the pool, so the task stays pending: the operator can run `muster pool start`"
    return f"wait(ids=[{task.id!r}])"
