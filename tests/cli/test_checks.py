"""`task merge --check`: a command without a shell; what only a shell understands is refused, not passed on."""

import pytest

from muster.cli.pool.checks import check_of
from muster.domain.errors import BadArgument


@pytest.mark.parametrize(
    "given",
    [
        "make test && make lint", "make test; make lint", "make test | tee log", "make test > log", "make test&",
        "(make test)", "pytest $DIR", "pytest `pwd`", 'pytest "$DIR"', "CI=1 make test", "make test || true",
        "true\nfalse", "echo a#b && false", "true # false", "test -e *.py", "ls ~/x", "echo {a,b}",
    ],
)  # fmt: skip
def test_shell_syntax_is_refused_with_the_command_that_asks_for_a_shell(given: str) -> None:
    with pytest.raises(BadArgument, match="without a shell") as refused:
        check_of(given)
    assert "--check 'sh -c " in str(refused.value.suggestions[0])


@pytest.mark.parametrize("given", ["", "  ", "make 'test"])
def test_what_checks_nothing_is_refused(given: str) -> None:
    with pytest.raises(BadArgument):
        check_of(given)


def test_a_command_is_taken_apart_as_it_is_quoted() -> None:
    assert check_of(None) == ()
    assert check_of("pytest -k 'a | b' --x='$1'") == ("pytest", "-k", "a | b", "--x=$1")
    assert check_of("sh -c 'make test && make lint'") == ("sh", "-c", "make test && make lint")
