"""The fields of orders are declared in one place: no command, route, tool or job names one again.

    python -m tests.test_declared_once message_limit

prints every line of the source that names a field, in any spelling, with what it is there, and counts the places in
which the field is written: where it is declared, and where it is used.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from muster.domain.order import DeclaredField, order_fields
from tests.orders import ORDERS
from tests.test_rooms import nodes_of, trees, walk

SOURCE = Path(__file__).parent.parent / "src/muster"
DOORS = ("cli", "api", "mcp", "app/serving")
# What other things are called by too; a single word always is. What they mean there is not an order's field.
COMMON = {"budget_usd", "job_id", "max_tokens", "output_schema", "run_id", "run_tags", "timeout_secs", "user_message"}
# Where a door names a field for another reason than to declare it.
REASONS = {
    ("cli/chains/order.py", "rows_file"): "read once, for several chains",
    ("cli/pool/fan_out.py", "dry_run"): "of worktrees that would be removed",
    ("app/serving/councils.py", "policy_file"): "the file of a policy of the library",
    **dict.fromkeys(
        ((f"cli/verify/{file}.py", "agents_file") for file in ("plan", "setup", "words")),
        "which file says who verifies, as a part of what is planned",
    ),
    **dict.fromkeys(
        (("cli/verify/order.py", "allow_empty"), ("cli/verify/plan.py", "allow_empty")), "the command alone uses it"
    ),
}
# Where one is declared for another reason than to be ordered.
DECLARED_AGAIN = {
    ("engine/terms.py", "max_turns"): "how often an agent may use tools in a step",
    ("app/views/tasks.py", "max_rejections"): "a part of the answer",
    ("app/views/verify.py", "agents_file"): "a part of the answer",
    ("battles/reports/json_report.py", "min_goal_rate"): "a part of the answer",
    ("battles/reports/json_report.py", "confirm_judge"): "a part of the answer",
    ("battles/reports/json_report.py", "message_limit"): "a part of the answer",
    ("cli/pool/fan_out.py", "dry_run"): "of worktrees that would be removed",
    ("app/battles/battles.py", "confirm_judge"): "an argument of Python",
    ("app/battles/scales.py", "min_goal_rate"): "an argument of Python",
    ("app/battles/scales.py", "try_revised"): "an argument of Python",
    ("engine/context.py", "max_turns"): "how often an agent may use tools in a step",
    **dict.fromkeys(
        ((file, "schema_file") for file in ("suites/format/forms.py", "pool/chains/forms.py")), "a key of a file"
    ),
    ("suites/format/forms.py", "model_effort"): "a key of a file",
    ("suites/values/case.py", "model_effort"): "of one case",
    ("councils/policy.py", "min_rounds"): "the file to begin with",
    ("councils/spec.py", "min_rounds"): "what it is where nobody says",
    ("councils/rules/stopping.py", "min_rounds"): "a rule that is given all it needs",
    ("settings/sections.py", "confirm_judge"): "the operator's choice where an order has none",
    **dict.fromkeys(
        (("settings/sections.py", name) for name in ("max_turns", "on_permission", "permission_mode")),
        "what the operator sets for the pool and its slots",
    ),
    ("pool/tasks.py", "on_permission"): "what a slot is set to",
    ("suites/spec.py", "judge_samples"): "what it is where nobody says",
    ("app/verify/request.py", "agents_file"): "which file says who verifies, found if none was named",
    ("verify/declaration/verification.py", "keep_going"): "a part of what is stored, which is not only the order's",
    **dict.fromkeys(
        (("agents/claude_code/setup.py", name) for name in ("max_turns", "permission_mode")),
        "what the agent of a slot is set to",
    ),
}

BOUNDS = {"ge", "le", "gt", "lt", "min", "max", "above", "min_length", "max_length"}
UNAWARE = ("sim/", "statistics/", "store/", "testing/")  # rooms that know nothing of orders
# Where a number or a word of its own is the bound or the default of something that only has the same name.
VALUES_WRITTEN = {
    ("api/routes/suites.py", "threshold"): "of a comparison",
    ("cli/suites/compare.py", "threshold"): "of a comparison",
    ("suites/spec.py", "epochs"): "what it is where nobody says",
    ("suites/spec.py", "judge_samples"): "what it is where nobody says",
    ("suites/statistics.py", "epochs"): "how often a case was run",
    ("suites/values/verdict.py", "threshold"): "of one result",
    ("api/bodies.py", "timeout_secs"): "of a drain",
    ("app/pool/task_queries.py", "rounds"): "how often a task was worked on",
    ("cli/service/worker.py", "concurrency"): "runs of a worker",
    ("domain/agent.py", "concurrency"): "calls to one agent",
    ("domain/rules.py", "max_tokens"): "a rule that stored runs keep",
    ("domain/run.py", "seed"): "of a stored run",
    ("engine/context.py", "max_turns"): "how often an agent may use tools in a step",
    ("mcp/control_inputs.py", "timeout_secs"): "of a drain",
    ("mcp/inputs.py", "timeout_secs"): "how long a tool waits",
    ("settings/sections.py", "concurrency"): "runs of a worker",
    ("settings/sections.py", "runs"): "at once",
    ("settings/service.py", "runs"): "at once",
    **dict.fromkeys(
        (
            ("suites/statistics.py", "seed"),
            ("suites/compare/test.py", "seed"),
        ),
        "of what is drawn for statistics",
    ),
}


_PAGE = "where a page begins"
_FILTER = "what is looked for"
_ACTION = "of something that is done to work which is there"
# What a door declares with bounds, or for itself, under the name of a field, and what it means there.
OTHER_THINGS = {
    **dict.fromkeys((("api/bodies.py", name) for name in ("priority", "prompt", "timeout_secs")), _ACTION),
    **dict.fromkeys(
        (
            *((f"api/routes/{file}.py", "after") for file in ("batches", "runs", "streams", "suites", "verify")),
            *((f"mcp/{file}.py", "after") for file in ("control_inputs", "inputs")),
        ),
        _PAGE,
    ),
    **dict.fromkeys(
        (*(("api/routes/pool.py", name) for name in ("model", "name", "role")), ("api/routes/tasks.py", "slot")),
        _FILTER,
    ),
    ("api/routes/runs.py", "agent"): _FILTER,
    ("cli/pool/task.py", "priority"): _ACTION,
    ("cli/suites/compare.py", "threshold"): "of a comparison",
    ("cli/service/worker.py", "concurrency"): "runs of a worker",
    **dict.fromkeys(
        (("mcp/control_inputs.py", name) for name in ("budget_usd", "name", "slot", "timeout_secs")), _ACTION
    ),
    ("mcp/inputs.py", "timeout_secs"): "how long a tool waits",
}


def declared_by_doors() -> set[tuple[str, str]]:
    """Return what doors declare under the name of any field of an order: with bounds, or as a parameter of the door."""
    found = set()
    for file, tree in trees().items():
        if not file.startswith(DOORS) or _declares(file):
            continue
        for node in nodes_of(tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name, annotation = node.target.id, node.annotation
            elif isinstance(node, ast.arg) and node.annotation is not None:
                name, annotation = node.arg, node.annotation
            else:
                continue
            asked = ("Option",) if name in valued() else ()
            if name in fields() and (_bounds(annotation) or _calls(annotation, ("Field", "Query", *asked))):
                found.add((file, name))
    return found


def _calls(annotation: ast.expr, names: Collection[str]) -> bool:
    """Return whether an annotation says how a door takes a value, by one of these: as an option, a field, a query."""
    calls = (node.func for node in walk(annotation) if isinstance(node, ast.Call))
    return any(isinstance(each, ast.Name) and each.id in names for each in calls)


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
    return {field.name for order in ORDERS for field in order_fields(order)}


def telling() -> set[str]:
    """Return the fields whose names are used for nothing else."""
    return {name for name in fields() if "_" in name} - COMMON


def test_no_door_names_a_field_of_an_order() -> None:
    checked = telling()
    assert {"message_limit", "confirm_judge", "plateau_turns", "min_goal_rate", "try_revised"} <= checked
    named = {(file, field) for field in checked for file, _, _ in lines_with(field) if file.startswith(DOORS)}
    assert named == set(REASONS)


def test_no_door_declares_a_field_again() -> None:
    """Whatever it is called: also a field whose name is one word, and bounds that are constants."""
    assert declared_by_doors() == set(OTHER_THINGS)


def test_a_field_is_declared_in_one_file() -> None:
    declared = {
        (file, field) for field in telling() for file, _, line in lines_with(field) if re.match(rf"{field}\s*:", line)
    }
    assert {field for file, field in declared if _declares(file)} == telling()
    assert {one for one in declared if not _declares(one[0])} == set(DECLARED_AGAIN)


def test_no_bound_and_no_default_of_a_field_is_written_again() -> None:
    assert {"rounds", "min_rounds", "quorum", "effort", "runs", "concurrency", "message_limit"} <= valued()
    checked = (file for file in sources() if not _declares(file) and not file.startswith(UNAWARE))
    again = {(file, name) for file in checked for name in values_written(file)}
    assert again == set(VALUES_WRITTEN)


def test_values_that_are_written_again_are_seen() -> None:
    text = "class A:\n rounds: int = 3\ndef f(*, quorum: Annotated[float, Field(le=1)] = None, runs=LIMIT): ...\n"
    seen = {name for name, parts in _declarations(ast.parse(text)) if any(map(_says_value, parts))}
    assert seen == {"rounds", "quorum"}


@cache
def valued() -> frozenset[str]:
    """Return the fields that have a number as a bound, or a number or a word as their default."""
    declared = (field for order in ORDERS for field in order_fields(order))
    return frozenset(field.name for field in declared if _has_value(field))


def _has_value(field: DeclaredField) -> bool:
    bounds = (field.declared.min, field.declared.max, field.declared.above)
    usual = field.default if isinstance(field.default, int | float | str) else ""
    return any(bound is not None for bound in bounds) or (usual not in ("", False, True))


def values_written(file: str) -> set[str]:
    """Return the fields that a file declares with a bound or a default of its own, which is not a named constant."""
    declared = _declarations(trees()[file]) if file in trees() else ()
    return {name for name, parts in declared if name in valued() and any(map(_says_value, parts))}


def _declarations(tree: ast.AST) -> Iterator[tuple[str, list[ast.expr]]]:
    """Yield the fields of classes and the parameters that have a default, with the default and all bounds."""
    for node in nodes_of(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, [*_bounds(node.annotation), *([] if node.value is None else [node.value])]
        elif isinstance(node, ast.arguments):
            plain = [*node.posonlyargs, *node.args]
            optional = [*plain[len(plain) - len(node.defaults) :], *node.kwonlyargs]
            for parameter, default in zip(optional, [*node.defaults, *node.kw_defaults], strict=True):
                bounds = [] if parameter.annotation is None else _bounds(parameter.annotation)
                yield parameter.arg, [*bounds, *([] if default is None else [default])]


def _bounds(annotation: ast.expr) -> list[ast.expr]:
    calls = (node for node in walk(annotation) if isinstance(node, ast.keyword) and node.arg in BOUNDS)
    return [call.value for call in calls]


def _says_value(part: ast.expr) -> bool:
    """Return whether an expression is a number or a word; none, nothing and no say nothing."""
    return (
        isinstance(part, ast.Constant) and part.value not in (None, "", b"", ...) and not isinstance(part.value, bool)
    )


def _declares(file: str) -> bool:
    return file.endswith("order.py") and not file.startswith(DOORS)


FIELDS = ("message_limit", "rounds", "timeout_secs", "plateau_turns", "max_rejections", "judge_samples")
GENERATED = ("docs/COMMANDS.md", "docs/FIELDS.md")
USED = "used"


def role_of(field: str, file: str, line: str) -> str:
    """Return what a line is that names a field: its declaration, a use, or a further place."""
    declares = re.match(rf"{field}\s*:", line) is not None
    if declares and _declares(file) and "Annotated[" in line:
        return "declared"
    if file.startswith(DOORS) and (file, field) not in REASONS | VALUES_WRITTEN and field in telling():
        return "named by a door"
    known = DECLARED_AGAIN | VALUES_WRITTEN
    return "declared again" if declares and (file, field) not in known and field in telling() else USED


def places(field: str) -> tuple[int, dict[str, list[str]]]:
    """Return in how many places a field is written, all its uses being one, and its lines by what they are."""
    found: dict[str, list[str]] = {}
    for file, number, line in lines_with(field):
        found.setdefault(role_of(field, file, line), []).append(f"{file}:{number}: {line[:100]}")
    written = sum(len(lines) for role, lines in found.items() if role != USED)
    return written + (USED in found), found


def generated(field: str) -> list[str]:
    """Return the generated documents that name a field."""
    spelled = {field, to_camel(field), field.replace("_", "-"), f"--{field.removesuffix('_secs')}"}
    texts = {name: (SOURCE.parent.parent / name).read_text(encoding="utf-8") for name in GENERATED}
    return [name for name, text in texts.items() if any(one in text for one in spelled)]


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_is_written_where_it_is_declared_and_where_it_is_used(field: str) -> None:
    number, found = places(field)
    assert number == 2, found
    assert generated(field) == list(GENERATED)


def main() -> None:
    """Print where fields are written."""
    for field in sys.argv[1:] or FIELDS:
        number, found = places(field)
        print(f"{field}: {number} places, and in {' and '.join(generated(field))}")
        for role, lines in found.items():
            print(f"  {role} ({len(lines)})")
            print("".join(f"    {line}\n" for line in lines), end="")


if __name__ == "__main__":
    main()
