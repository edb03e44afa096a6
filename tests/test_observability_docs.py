"""What docs/OBSERVABILITY.md tells is true: every metric with its labels, every event of the log, and no other."""

import ast
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from muster.app import open_muster
from muster.observability import logs

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "OBSERVABILITY.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, str]:
    """Return the first cells of the table under a heading, each with its second."""
    part = PAGE.partition(f"## {heading}\n")[2].split("\n## ")[0]
    return {name: rest.strip() for name, rest in re.findall(r"^\| `([\w.]+)` \|([^|]*)\|", part, re.MULTILINE)}


async def test_every_metric_is_told_and_no_other(tmp_path: Path) -> None:
    async with open_muster(tmp_path, metrics=True) as muster:
        await muster.ask("sim/echo", "hello")
        families = list(text_string_to_metric_families(await muster.metrics()))
    told = rows("Metrics")
    assert list(told) == [one.name + ("_total" if one.type == "counter" else "") for one in families]
    for (name, labels), family in zip(told.items(), families, strict=True):
        used = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert used <= set(re.findall(r"`(\w+)`", labels)), name


def test_every_event_of_the_log_is_told_and_no_other() -> None:
    tree = ast.parse(Path(logs.__file__).read_text(encoding="utf-8"))
    written = {"request", "server", "tool"} | {  # which the servers write
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"(?:run|call|attempt|batch)\.[a-z]+", node.value)
    }
    assert set(rows("Log lines")) == written
