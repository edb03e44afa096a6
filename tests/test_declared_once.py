"""The fields of orders are declared in one place: no command, route, tool or job names one again.

    python -m tests.test_declared_once message_limit

prints every line of the source that names a field, in any spelling.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic.alias_generators import to_camel

from muster.battles.order import BattleOrder, ScaleOrder
from muster.domain.order import order_fields

SOURCE = Path(__file__).parent.parent / "src/muster"
DOORS = ("cli", "api", "mcp", "app/serving")
ORDERS = {"battles": (BattleOrder, ScaleOrder)}
# Words that other things are called by too; what they mean there is not an order's field.
COMMON = {
    *("agent", "agents", "budget_usd", "cache", "concurrency", "counterpart", "dispatch", "fallback", "goal", "goals"),
    *("id", "job_id", "judge", "max_tokens", "model", "name", "persona", "prompts", "provider", "reviser", "revision"),
    *("run_id", "run_tags", "runs", "seed", "temperature", "timeout_secs", "user_message", "validators"),
}
# Where a door names a field for another reason than to declare it.
REASONS = {
    ("api/routes/battles.py", "message_limit"): "the example of a body",
    ("app/serving/battles.py", "confirm_judge"): "requests may name only agents of the library",
}
# Where one is declared for another reason than to be ordered.
DECLARED_AGAIN = {
    ("app/battles/battles.py", "confirm_judge"): "an argument of Python",
    ("app/battles/scales.py", "min_goal_rate"): "an argument of Python",
    ("app/battles/scales.py", "try_revised"): "an argument of Python",
    ("settings/sections.py", "confirm_judge"): "the operator's choice where an order has none",
}


def lines_with(field: str) -> Iterator[tuple[str, int, str]]:
    """Yield every line of the source that names a field: its file, its number and its text."""
    spelled = {field, to_camel(field), field.replace("_", "-")}
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(spelled)))})(?![\w-])")
    for file, text in sources().items():
        if any(one in text for one in spelled):
            for number, line in enumerate(text.splitlines(), 1):
                if pattern.search(line):
                    yield file, number, line.strip()


@cache
def sources() -> dict[str, str]:
    """Return the files of the source by their paths."""
    found = (path for path in sorted(SOURCE.rglob("*")) if path.suffix in (".py", ".js", ".sql"))
    return {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in found}


def fields() -> set[str]:
    return {field.name for orders in ORDERS.values() for order in orders for field in order_fields(order)}


def test_no_door_names_a_field_of_an_order() -> None:
    checked = fields() - COMMON
    assert {"message_limit", "confirm_judge", "plateau_turns", "min_goal_rate", "try_revised"} <= checked
    named = {(file, field) for field in checked for file, _, _ in lines_with(field) if file.startswith(DOORS)}
    assert named == set(REASONS)


def test_a_field_is_declared_in_one_file() -> None:
    declared = {
        (file, field)
        for field in fields() - COMMON
        for file, _, line in lines_with(field)
        if re.match(rf"{field}\s*:", line)
    }
    assert {field for file, field in declared if file.endswith("/order.py")} == fields() - COMMON
    assert {one for one in declared if not one[0].endswith("/order.py")} == set(DECLARED_AGAIN)


def main() -> None:
    """Print where fields are named."""
    for field in sys.argv[1:]:
        found = list(lines_with(field))
        print(f"{field}: {len(found)} lines in {len({file for file, _, _ in found})} files")
        for file, number, line in found:
            print(f"  {file}:{number}: {line[:100]}")


if __name__ == "__main__":
    main()
