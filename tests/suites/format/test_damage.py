"""Whatever is wrong in one case of a suite, the other cases can be run: our own examples, damaged at every place."""

import copy
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.suites.format.suite import open_suite
from muster.text.document_tree import plain_value
from muster.text.documents.yaml_reader import YamlFile

EXAMPLES = Path(__file__).parents[3] / "examples" / "suites"
GARBAGE: list[Any] = [
    None,
    True,
    -1,
    0,
    1e300,
    "",
    "x",
    "{{none}}",
    "../..",
    "\0",
    [],
    [None],
    {},
    {"x": {"y": []}},
    [[1]],
]
ROUNDS = 15


def places(tree: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return every place in a case, itself included."""
    yield place
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, value in steps:
        yield from places(value, (*place, step))


def damaged(case: Any, chance: random.Random) -> Any:
    """Return a case with one place taken out, renamed, doubled or replaced by garbage."""
    place = chance.choice(list(places(case)))
    if not place:
        return chance.choice(GARBAGE)
    found = copy.deepcopy(case)
    around: Any = found
    for step in place[:-1]:
        around = around[step]
    last = place[-1]
    match chance.randrange(5):
        case 0:
            del around[last]
        case 1 if isinstance(around, dict):
            around[last[:-1] + "_" + last[-1:]] = around.pop(last)
        case 2 if isinstance(around, list):
            around.append(around[last])
        case _:
            around[last] = chance.choice(GARBAGE)
    return found


@pytest.mark.parametrize("name", sorted(folder.name for folder in EXAMPLES.iterdir()))
def test_one_damaged_case_never_stops_the_others(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    path = folder / "cases.yaml"
    source = YamlFile(path)
    head = {key: plain_value(value) for key, value in source.head().items() if key != "cases"}
    cases = [plain_value(case) for case, _ in source.cases()]
    chance = random.Random(name)
    for _ in range(ROUNDS):
        which = chance.randrange(len(cases))
        wrong = damaged(cases[which], chance)
        path.write_text(json.dumps({**head, "cases": [*cases[:which], wrong, *cases[which + 1 :]]}), encoding="utf-8")
        found = [case for case, _ in open_suite(path).cases_to_run()]
        others = {case["id"] for case in cases if case is not cases[which]}
        good = {case.id for case in found if not case.flaw}
        assert len({case.id for case in found}) == len(found), wrong
        assert all(any(f"{name}/".startswith(f"{other}/") for name in good) for other in others), wrong
