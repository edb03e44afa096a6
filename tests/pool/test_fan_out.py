"""Fan-out: many prompts at once, results in their order; figures over tasks."""

import json
from pathlib import Path

import pytest

from muster.app.pool.orders import ordered_fan_out, run_terms
from muster.app.views.pool import metrics_view
from muster.domain.errors import BadFile, NotFound
from muster.domain.money import Microdollars
from muster.domain.run import Spent
from muster.domain.task import TaskState
from muster.pool.fan_out import FanOut, read_fan_out
from muster.pool.metrics import MeasuredTask, pool_metrics
from muster.pool.order import FanOutOrder
from muster.text.views import plain
from tests.pool.test_pool import TOML, opened


def write(folder: Path, text: str, name: str = "fan-out.yaml") -> Path:
    (folder / name).write_text(text)
    return folder / name


async def test_results_line_up_with_prompts_and_one_failure_drops_nothing(tmp_path: Path) -> None:
    picky = '[agents.picky]\nkind = "program"\nmode = "plain"\ncommand = ["grep", "good"]\n'
    file = write(tmp_path, 'agent: picky\nprompts: ["good 1", "bad", "good 2"]\n')
    async with opened(tmp_path, TOML + picky) as m:
        found = await m.pool.fan_out(read_fan_out(file))
        assert [str(task.state) for task in found] == ["completed", "failed", "completed"]
        assert [task.reply and task.reply.text for task in found] == ["good 1", None, "good 2"]
        figures = await m.pool.metrics()
        assert (figures.tasks, figures.states[TaskState.FAILED]) == (3, 1)
        assert (await m.pool.metrics(tags=["none"])).tasks == 0


async def test_what_is_ordered_counts_before_the_file_and_names_are_numbered(tmp_path: Path) -> None:
    file = write(tmp_path, "agent: nobody\nsystem: Be brief.\nprompts: [a, b]\n")
    order = FanOutOrder(file=file, agent="sim/echo", review=True, name="many", tags=("t",), timeout_secs=50.0)
    wanted = ordered_fan_out(order)
    assert wanted == FanOut(prompts=("a", "b"), agent="sim/echo", system="Be brief.", review=True)
    async with opened(tmp_path) as m:
        done = await m.pool.fan_out(wanted, **run_terms(order))
    told = [(task.run.name, task.run.tags, task.run.timeout, str(task.state)) for task in done]
    assert told == [(f"many-{number}", ("t",), 50.0, "pending_review") for number in (1, 2)]


def test_prompts_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    lines = [json.dumps("one"), json.dumps({"prompt": "two"}), ""]
    write(tmp_path, "\n".join(lines), "prompts.jsonl")
    assert read_fan_out(write(tmp_path, "file: prompts.jsonl\n")).prompts == ("one", "two")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("agent: a\n", "set either prompts or file"),
        ("prompts: []\n", "between 1 and 10,000 prompts"),
        ('prompts: ["a", " "]\n', "prompt 2 is empty"),
        ("prompts: [{a: 3}]\n", "must be a string"),
        ("prompts: [a]\nagnet: b\n", "agnet"),
        ("prompts: [a]\nbudget_usd: -1\n", "must be more than 0"),
        ("prompts: [a\n", ""),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadFile, match=r"fan-out\.yaml:\d") as caught:
        read_fan_out(write(tmp_path, text))
    assert told in caught.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_fan_out(tmp_path / "nothing.yaml")
    with pytest.raises(NotFound):
        read_fan_out(write(tmp_path, "file: nothing.jsonl\n"))


def test_figures_over_tasks() -> None:
    billed, uncertain = Spent(billed=Microdollars(100)), Spent(uncertain=Microdollars(300))
    tasks = [
        MeasuredTask(state=TaskState.COMPLETED, spent=billed, elapsed=1.0, turns=2, model="a"),
        MeasuredTask(state=TaskState.COMPLETED, spent=uncertain, elapsed=4.0, turns=1, model="b"),
        MeasuredTask(state=TaskState.FAILED, elapsed=1.0),
    ]
    found = pool_metrics(tasks)
    assert (found.spent.settled, found.average_cost, found.highest_cost, found.turns) == (400, 133, 300, 3)
    assert found.elapsed == (1.0, 1.0, 2.0, 4.0)
    assert {model: one.tasks for model, one in found.models.items()} == {"a": 1, "b": 1}
    assert pool_metrics([]).elapsed is None


def test_figures_by_model_add_up_to_those_of_all_tasks() -> None:
    lost = Spent(uncertain=Microdollars(1_000))
    known = MeasuredTask(state=TaskState.COMPLETED, spent=Spent(imputed=Microdollars(60)), model="a")
    found = pool_metrics([known, MeasuredTask(state=TaskState.CANCELED, spent=lost)])
    assert (found.unknown_model.tasks, found.unknown_model.spent) == (1, lost)
    assert sum((one.spent for one in found.models.values()), found.unknown_model.spent) == found.spent
    view = plain(metrics_view(found))
    assert (view["cost_usd"], view["imputed_usd"], view["uncertain_usd"]) == (0.00106, 0.00006, 0.001)
    assert view["unknown_model"]["uncertain_usd"] == 0.001
