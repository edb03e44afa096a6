"""The command line: what words mean, what is refused and how, and what the help says."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.cli.frame import command, default, group, perform
from muster.cli.line import Argument, Misuse, Option
from muster.cli.terminal.output import OutputOptions

WORDS = ("tell", "inner", "a", "--", "-", "-l", "--name", "--x=1", "--loud", "-qu", "9")
SHORT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


def perform_it(words: Sequence[str]) -> dict[str, Any]:
    """Do a command that tells what it was given."""
    seen: dict[str, Any] = {}
    app = group("All of it.")
    inner = group("What is inside.")
    app.add("inner", inner)

    @command(inner, "tell")
    def tell(
        manner: OutputOptions,
        first: Annotated[str, Argument(metavar="FIRST", help="The first.")],
        rest: Annotated[list[Path] | None, Argument(metavar="REST…", help="All others.")] = None,
        limit: Annotated[int, Option("--limit", "-l", metavar="N", min=1, max=50, help="How many.")] = 20,
        score: Annotated[float | None, Option("--score", metavar="X", min=0, help="How well.")] = None,
        names: Annotated[list[str] | None, Option("--name", "-n", metavar="NAME", help="Who.")] = None,
        loud: Annotated[bool, Option("--loud", "-u", help="Shout.")] = False,
        counts: Annotated[bool | None, Option("--counts/--no-counts", help="Tell how far it is.")] = None,
    ) -> int:
        """Tell what was given.

        And give 7 back.
        """
        given = locals()
        seen.update((name, given[name]) for name in ("manner", *tell.__annotations__) if name in given)
        return 7

    seen["code"] = perform(app, words)
    return seen


def test_options_stand_anywhere_and_arguments_keep_their_places() -> None:
    seen = perform_it(["inner", "tell", "-l", "3", "a", "--name=x", "b", "-nz", "c", "--loud", "--score", "1"])
    assert (seen["code"], seen["first"], seen["rest"]) == (7, "a", [Path("b"), Path("c")])
    assert (seen["limit"], seen["names"], seen["loud"], seen["score"]) == (3, ["x", "z"], True, 1.0)


def test_what_is_not_given_is_as_it_was_declared() -> None:
    seen = perform_it(["inner", "tell", "a"])
    assert (seen["rest"], seen["limit"], seen["score"], seen["names"]) == (None, 20, None, None)
    assert (seen["loud"], seen["counts"], seen["manner"]) == (False, None, OutputOptions(command="inner tell"))


def test_the_shared_options_are_taken_before_and_after_every_name() -> None:
    here, there = Path("here"), Path("there")
    assert perform_it(["--json", "inner", "-q", "tell", "a", "--home", "there"])["manner"] == OutputOptions(
        command="inner tell", json=True, quiet=True, home=there
    )
    assert perform_it(["--home=here", "inner", "tell", "a"])["manner"].home == here


def test_the_last_word_counts_and_a_flag_can_be_taken_back() -> None:
    seen = perform_it(["inner", "tell", "a", "--limit", "2", "--limit", "4", "--counts", "--no-counts"])
    assert (seen["limit"], seen["counts"]) == (4, False)


def test_short_flags_stand_together_and_a_value_may_look_like_an_option() -> None:
    seen = perform_it(["inner", "tell", "a", "-uqn", "--loud"])
    assert (seen["loud"], seen["manner"].quiet, seen["names"]) == (True, True, ["--loud"])


def test_after_two_dashes_nothing_is_an_option() -> None:
    seen = perform_it(["inner", "tell", "--loud", "--", "--limit", "--", "-"])
    assert (seen["first"], seen["rest"], seen["loud"]) == ("--limit", [Path("--"), Path("-")], True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("outer", "there is no command 'outer'"),
        ("inner tell", "FIRST is missing: The first."),
        ("inner tell a --limt 3", "there is no option --limt; did you mean --limit?"),
        ("inner tell a -x", "there is no option -x"),
        ("inner tell a -5", "there is no option -5"),
        ("inner tell a --limit", "--limit wants a value: N"),
        ("inner tell a --loud=yes", "--loud takes no value"),
        ("inner tell a --limit many", "--limit must be a whole number, not 'many'"),
        ("inner tell a -l 1.5", "--limit must be a whole number, not '1.5'"),
        ("inner tell a --limit 0", "--limit must be at least 1, not 0"),
        ("inner tell a --limit 51", "--limit must be at most 50, not 51"),
        ("inner tell a --score nan", "--score must be a number, not 'nan'"),
        ("inner tell a --score=", "--score must be a number, not ''"),
        ("--version", "there is no option --version"),
    ],
)
def test_what_does_not_fit_is_told_with_what_would(words: str, said: str) -> None:
    with pytest.raises(Misuse) as caught:
        perform_it(words.split())
    assert caught.value.message.startswith(said)
    names = [word for word in words.split() if word in ("inner", "tell")]
    assert caught.value.path == " ".join(["muster", *names])


def test_one_word_too_many_is_refused() -> None:
    app = group("All of it.")
    command(app, "nothing")(lambda manner: 0)
    assert perform(app, ["nothing"]) == 0
    with pytest.raises(Misuse, match="'more' is one word too many"):
        perform(app, ["nothing", "more"])


def test_help_tells_everything_and_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert perform_it(["inner", "tell", "--help", "--score", "x"]) == {"code": 0}
    text = capsys.readouterr().out
    assert text.startswith("Usage: muster inner tell [OPTIONS] FIRST [REST…]\n\n  Tell what was given.\n\n  And give 7")
    words = " ".join(text.split())
    for told in (
        "REST… All others.",
        "-l, --limit N How many. [default: 20; 1 to 50]",
        "--score X How well. [at least 0]",
        "--counts / --no-counts Tell",
        "--home PATH Where",
        "--help Show",
    ):
        assert told in words
    assert max(map(len, text.splitlines())) <= 80


def test_a_group_without_a_command_gives_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert perform_it(["inner"]) == {"code": 0}
    assert "  tell  Tell what was given. And give 7 back." in capsys.readouterr().out


def verify_it(words: Sequence[str]) -> dict[str, Any]:
    """Do a command of a group that has a default."""
    seen: dict[str, Any] = {}
    app = group("All of it.")
    check = group("Check things.")
    app.add("check", check)

    @default(check)
    def usual(
        manner: OutputOptions,
        paths: Annotated[list[str] | None, Argument(metavar="PATH…", help="What.")] = None,
        changed: Annotated[str | None, Option("--changed", metavar="[REF]", bare="HEAD", help="Since.")] = None,
    ) -> int:
        """Check."""
        seen.update(manner=manner, paths=paths, changed=changed)
        return 3

    @command(check, "plan")
    def plan(manner: OutputOptions, path: Annotated[str | None, Argument(metavar="PATH", help="What.")] = None) -> int:
        """Say what would be checked."""
        seen.update(manner=manner, plan=path)
        return 4

    seen["code"] = perform(app, words)
    return seen


@pytest.mark.parametrize(
    ("words", "paths", "changed"),
    [
        ("check", None, None),
        ("check a b", ["a", "b"], None),
        ("check ./plan", ["./plan"], None),
        ("check a plan", ["a", "plan"], None),
        ("check -- plan", ["plan"], None),
        ("check --changed plan", ["plan"], "HEAD"),
        ("check plans --changed=main", ["plans"], "main"),
        ("check --changed", None, "HEAD"),
        ("check --changed=", None, ""),
        ("check --json --changed a", ["a"], "HEAD"),
    ],
)
def test_words_that_name_no_member_are_for_the_default(words: str, paths: list[str] | None, changed: str) -> None:
    seen = verify_it(words.split())
    assert (seen["code"], seen["paths"], seen["changed"]) == (3, paths, changed)
    assert seen["manner"] == OutputOptions(command="check", json="--json" in words)


def test_a_member_is_found_behind_shared_options_and_nothing_else() -> None:
    seen = verify_it(["check", "--json", "--home", "here", "plan", "x"])
    assert (seen["code"], seen["plan"], seen["manner"].command) == (4, "x", "check plan")
    assert (seen["manner"].json, seen["manner"].home) == (True, Path("here"))
    with pytest.raises(Misuse, match="there is no option --chnged; did you mean --changed") as caught:
        verify_it(["check", "--chnged", "plan"])
    assert caught.value.path == "muster check"


def test_the_help_of_a_group_with_a_default_tells_both(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["check", "--help"], ["check", "a", "--changed", "--help"]):
        assert verify_it(words) == {"code": 0}
        text = capsys.readouterr().out
        assert text.startswith(
            "Usage: muster check [OPTIONS] [PATH…]\n       muster check [OPTIONS] COMMAND [ARGS]...\n"
        )
        assert "Check things." in text
        assert "  PATH…  What." in text
        assert "  --changed [REF]  Since." in text
        assert "  plan  Say what would be checked." in text
    assert verify_it(["check", "plan", "--help"]) == {"code": 0}
    assert capsys.readouterr().out.startswith("Usage: muster check plan [OPTIONS] [PATH]\n")


@settings(max_examples=150)
@given(first=SHORT, rest=st.lists(SHORT, max_size=3), names=st.lists(SHORT, max_size=3), limit=st.integers(1, 50))
def test_whatever_is_typed_arrives_as_it_is(first: str, rest: list[str], names: list[str], limit: int) -> None:
    said = [word for name in names for word in ("--name", name)]
    seen = perform_it(["inner", "tell", *said, f"-l{limit}", "--", first, *rest])
    assert (seen["first"], seen["names"] or [], seen["limit"]) == (first, names, limit)
    assert (seen["rest"] or []) == [Path(word) for word in rest]


@settings(max_examples=150)
@given(words=st.lists(st.sampled_from(WORDS)))
def test_words_are_taken_or_refused_and_nothing_else_happens(words: list[str]) -> None:
    with contextlib.suppress(Misuse):
        assert perform_it(words)["code"] in (0, 7)
