"""A program whose every expression has a type is also run: what type checkers read is what happens."""

from pathlib import Path

from tests import typed_program


async def test_a_typed_program_gets_values_of_the_types_that_it_was_promised(tmp_path: Path) -> None:
    report = await typed_program.main(tmp_path)
    assert report == typed_program.Report(labels=["one", "two", "a"], people=5)


def test_a_typed_script_gets_the_same(tmp_path: Path) -> None:
    assert typed_program.script(tmp_path) == typed_program.Report(labels=["one", "two", "a"], people=5)
