"""The command line: what words mean, what is refused and how, and what the help says."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.commands import app
from muster.cli.line import Argument, Bundle, CliGroup, CommandEntry, Option
from muster.cli.line.commands import SETTINGS
from muster.cli.main import perform
from muster.cli.terminal.output import CommonOptions
from muster.domain.errors import BadArgument

WORDS = ("tell", "inner", "a", "--", "-", "-l", "--name", "--x=1", "--loud", "-qu", "9", "help", "-V")
SHORT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


def pair_of(
    left: Annotated[str, Option("--left", metavar="L", help="The one.")] = "l",
    right: Annotated[str, Option("--right", metavar="R", values=("r", "s"), help="The other.")] = "r",
) -> tuple[str, str]:
    return left, right


def perform_it(words: Sequence[str]) -> dict[str, Any]:
    """Do a command that tells what it was given."""
    seen: dict[str, Any] = {}

    def tell(
        common: CommonOptions,
        first: Annotated[str, Argument(metavar="FIRST", help="The first.")],
        rest: Annotated[list[Path] | None, Argument(metavar="REST…", help="All others.")] = None,
        limit: Annotated[int, Option("--limit", "-l", metavar="N", min=1, max=50, help="How many.")] = 20,
        score: Annotated[float | None, Option("--score", metavar="X", min=0, shown="0.7", help="How well.")] = None,
        names: Annotated[list[str] | None, Option("--name", "-n", metavar="NAME", help="Who.")] = None,
        loud: Annotated[bool, Option("--loud", "-u", help="Shout.")] = False,
        counts: Annotated[bool | None, Option("--counts/--no-counts", help="Tell how far it is.")] = None,
        *,
        pair: Annotated[tuple[str, str], Bundle(pair_of, "Pairs")],
    ) -> int:
        """Tell what was given.

        And give 7 back.
        """
        given = locals()
        seen.update((name, given[name]) for name in ("common", *tell.__annotations__) if name in given)
        return 7

    def nothing(
        common: CommonOptions,
        prompt: Annotated[str | None, Argument(metavar="PROMPT", when_more="quote the prompt", help="It.")] = None,
    ) -> int:
        """Do nothing."""
        return 0

    inner = {"tell": CommandEntry("Tell what was given. And give 7 back.", tell)}
    table = {"inner": CommandEntry("What is inside.", commands=inner), "nothing": CommandEntry("Do nothing.", nothing)}
    seen["code"] = perform(CliGroup("muster", CommandEntry("All of it.", commands=table)), words)
    return seen


def test_options_stand_anywhere_and_arguments_keep_their_places() -> None:
    seen = perform_it(["inner", "tell", "-l", "3", "a", "--name=x", "b", "-nz", "c", "--loud", "--score", "1"])
    assert (seen["code"], seen["first"], seen["rest"]) == (7, "a", [Path("b"), Path("c")])
    assert (seen["limit"], seen["names"], seen["loud"], seen["score"]) == (3, ["x", "z"], True, 1.0)


def test_what_is_not_given_is_as_it_was_declared() -> None:
    seen = perform_it(["inner", "tell", "a"])
    assert (seen["rest"], seen["limit"], seen["score"], seen["names"]) == (None, 20, None, None)
    assert (seen["loud"], seen["counts"], seen["common"]) == (False, None, CommonOptions(command="inner tell"))
    assert seen["pair"] == ("l", "r")


def test_the_shared_options_are_taken_before_and_after_every_name() -> None:
    here, there = Path("here"), Path("there")
    assert perform_it(["--json", "inner", "-q", "tell", "a", "--home", "there"])["common"] == CommonOptions(
        command="inner tell", json=True, quiet=True, home=there
    )
    assert perform_it(["--home=here", "inner", "tell", "a"])["common"].home == here


def test_the_last_word_counts_and_a_flag_can_be_taken_back() -> None:
    seen = perform_it(["inner", "tell", "a", "--limit", "2", "--limit", "4", "--counts", "--no-counts"])
    assert (seen["limit"], seen["counts"]) == (4, False)


def test_short_flags_stand_together_and_a_value_may_look_like_an_option() -> None:
    seen = perform_it(["inner", "tell", "a", "-uqn", "--loud"])
    assert (seen["loud"], seen["common"].quiet, seen["names"]) == (True, True, ["--loud"])


def test_after_two_dashes_nothing_is_an_option() -> None:
    seen = perform_it(["inner", "tell", "--loud", "--", "--limit", "--", "-"])
    assert (seen["first"], seen["rest"], seen["loud"]) == ("--limit", [Path("--"), Path("-")], True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("outer", "no such command 'outer'"),
        ("iner", "no such command 'iner'. Did you mean 'inner'?"),
        ("inner tel", "no such command 'tel'. Did you mean 'tell'?"),
        ("inner tell", "missing argument FIRST (the first)"),
        ("inner tell a --limt 3", "no such option '--limt'. Did you mean '--limit'?"),
        ("inner tell a -x", "no such option '-x'"),
        ("inner tell a -5", "no such option '-5'"),
        ("inner tell a --limit", "option '--limit' requires an argument"),
        ("inner tell a --loud=yes", "option '--loud' does not take a value"),
        ("inner tell a --limit many", "--limit must be a whole number, not 'many'"),
        ("inner tell a -l 1.5", "--limit must be a whole number, not '1.5'"),
        ("inner tell a -l 1_0", "--limit must be a whole number, not '1_0'"),
        ("inner tell a --limit 0", "--limit must be at least 1, not 0"),
        ("inner tell a --limit 51", "--limit must be at most 50, not 51"),
        ("inner tell a --score nan", "--score must be a number, not 'nan'"),
        ("inner tell a --score=", "--score must be a number, not ''"),
        ("nothing what is", "unexpected argument 'is'"),
        ("help outer", "no such command 'outer'"),
        ("help nothing more", "unexpected argument 'more'"),
    ],
)
def test_what_does_not_fit_is_told_with_what_would(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform_it(["--json", *words.split()]) == {"code": 2}
    told = json.loads(capsys.readouterr().out)
    names = [word for word in words.split() if word in ("inner", "tell", "nothing")]
    names = ["help"] if words == "help nothing more" else names
    path = " ".join(["muster", *names])
    ways = [*(["quote the prompt"] if "what" in words else []), f"{path} --help"]
    usage = {"code": "usage", "message": said, "suggestions": ways}
    assert all(one["path"] in said for one in told["error"].pop("fields", ()))
    assert told == {"ok": False, "command": path.partition(" ")[2], "error": usage}
    assert perform_it(words.split()) == {"code": 2}
    assert capsys.readouterr().err == "\n  ".join([f"error: {said}", *ways]) + "\n"


@pytest.mark.parametrize("ask", ["-h", "--help"])
def test_help_tells_everything_and_does_nothing(ask: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform_it(["inner", "tell", ask, "--score", "x"]) == {"code": 0}
    text = capsys.readouterr().out
    assert text.startswith("Usage: muster inner tell [OPTIONS] FIRST [REST…]\n\n  Tell what was given.\n\n  And give 7")
    words = " ".join(text.split())
    for told in (
        "Arguments: FIRST The first. REST… All others.",
        "-l, --limit N How many. [default: 20; 1 to 50]",
        "--score X How well. [default: 0.7; at least 0]",
        "--counts / --no-counts Tell",
        "Pairs: --left L The one. [default: l]",
        "--right R The other. One of r, s. [default: r]",
        "Common options: --json Print",
        "--home PATH The folder",
        "-V, --version Show",
        "-h, --help Show",
    ):
        assert told in words


@pytest.mark.parametrize("words", ["inner", "inner help", "help inner"])
def test_a_group_without_a_command_gives_its_help(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform_it(words.split()) == {"code": 0}
    text = capsys.readouterr().out
    assert "  tell  Tell what was given. And give 7 back." in text
    assert text.startswith("Usage: muster inner [OPTIONS] COMMAND [ARGS]...")
    assert perform_it([*words.split(), "--json"]) == {"code": 0}
    told = json.loads(capsys.readouterr().out)
    assert told == {"ok": True, "command": "inner", "data": {"help": text.removesuffix("\n")}}


@pytest.mark.parametrize("words", ["help inner tell", "inner help tell"])
def test_help_with_a_command_is_the_help_of_that_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform_it(["inner", "tell", "--help"]) == {"code": 0}
    asked = capsys.readouterr().out
    assert perform_it(words.split()) == {"code": 0}
    assert capsys.readouterr().out == asked


@pytest.mark.parametrize("words", ["-V", "--version", "inner -V", "inner tell -V", "inner tell a --version"])
def test_the_version_is_told_everywhere(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform_it(words.split()) == {"code": 0}
    assert capsys.readouterr().out.startswith("muster ")
    assert perform_it([*words.split(), "--json"]) == {"code": 0}
    assert list(json.loads(capsys.readouterr().out)["data"]) == ["version"]


def every_help(width: int) -> Iterator[tuple[str, str]]:
    """Give the help of every command, as it is printed on a terminal of this width."""
    left = [click.Context(app, info_name="muster", terminal_width=width - 2, **SETTINGS)]
    while left:
        one = left.pop()
        yield one.command_path, one.get_help()
        if isinstance(one.command, CliGroup):
            for name in one.command.list_commands(one):
                command = one.command.get_command(one, name)
                assert command is not None
                left.append(click.Context(command, info_name=name, parent=one, terminal_width=width - 2, **SETTINGS))


@pytest.mark.parametrize("width", [60, 80])
def test_every_help_fits_the_terminal(width: int) -> None:
    wide = {path: max(map(len, text.splitlines())) for path, text in every_help(width)}
    assert {path: longest for path, longest in wide.items() if longest > width} == {}
    assert len(wide) > 50


def verify_it(words: Sequence[str]) -> dict[str, Any]:
    """Do a command of a group that has a default."""
    seen: dict[str, Any] = {}

    def usual(
        common: CommonOptions,
        paths: Annotated[list[str] | None, Argument(metavar="PATH…", help="What.")] = None,
        changed: Annotated[str | None, Option("--changed", metavar="[REF]", bare="HEAD", help="Since.")] = None,
    ) -> int:
        """Check."""
        seen.update(common=common, paths=paths, changed=changed)
        return 3

    def plan(common: CommonOptions, path: Annotated[str | None, Argument(metavar="PATH", help="What.")] = None) -> int:
        """Say what would be checked."""
        seen.update(common=common, plan=path)
        return 4

    check = CommandEntry("Check things.", usual, {"plan": CommandEntry("Say what would be checked.", plan)})
    seen["code"] = perform(CliGroup("muster", CommandEntry("All of it.", commands={"check": check})), words)
    return seen


@pytest.mark.parametrize(
    ("words", "paths", "changed"),
    [
        ("check", None, None),
        ("check a b", ["a", "b"], None),
        ("check ./plan", ["./plan"], None),
        ("check a plan", ["a", "plan"], None),
        ("check -- plan", ["plan"], None),
        ("check --changed plan", None, "plan"),
        ("check plans --changed=main", ["plans"], "main"),
        ("check --changed", None, "HEAD"),
        ("check --changed=", None, ""),
        ("check --json --changed a", None, "a"),
        ("check a --changed --json", ["a"], "HEAD"),
    ],
)
def test_words_that_name_no_member_are_for_the_default(words: str, paths: list[str] | None, changed: str) -> None:
    seen = verify_it(words.split())
    assert (seen["code"], seen["paths"], seen["changed"]) == (3, paths, changed)
    assert seen["common"] == CommonOptions(command="check", json="--json" in words)


def test_a_member_is_found_behind_shared_options_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    seen = verify_it(["check", "--json", "--home", "here", "plan", "x"])
    assert (seen["code"], seen["plan"], seen["common"].command) == (4, "x", "check plan")
    assert (seen["common"].json, seen["common"].home) == (True, Path("here"))
    assert verify_it(["check", "--chnged", "plan"]) == {"code": 2}
    told = "error: no such option '--chnged'. Did you mean '--changed'?\n  muster check --help\n"
    assert capsys.readouterr().err == told


def test_the_help_of_a_group_with_a_default_tells_both(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["check", "--help"], ["check", "a", "--changed", "--help"], ["help", "check"]):
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


@given(first=SHORT, rest=st.lists(SHORT, max_size=3), names=st.lists(SHORT, max_size=3), limit=st.integers(1, 50))
def test_whatever_is_typed_arrives_as_it_is(first: str, rest: list[str], names: list[str], limit: int) -> None:
    said = [word for name in names for word in ("--name", name)]
    seen = perform_it(["inner", "tell", *said, f"-l{limit}", "--", first, *rest])
    assert (seen["first"], seen["names"] or [], seen["limit"]) == (first, names, limit)
    assert (seen["rest"] or []) == [Path(word) for word in rest]


@given(words=st.lists(st.sampled_from(WORDS)))
def test_words_are_taken_or_refused_and_nothing_else_happens(words: list[str]) -> None:
    assert perform_it(words)["code"] in (0, 2, 7)


def refuse(
    common: CommonOptions,
    about: Annotated[str, Argument(metavar="ABOUT", help="The argument that is wrong.")],
    most_time: Annotated[float, Option("--most-time", metavar="S", help="A limit.")] = 60.0,
    pair: Annotated[tuple[str, str], Bundle(pair_of, hidden=("--left",))] = ("l", "r"),
) -> int:
    """Refuse."""
    raise BadArgument("must be more than 0, not 0", argument=about)


REFUSING = CliGroup("muster", CommandEntry("All of it.", commands={"refuse": CommandEntry("Refuse.", refuse)}))


@pytest.mark.parametrize(("about", "name"), [("most_time", "--most-time"), ("limit", "limit")])
def test_an_error_about_an_argument_names_the_option_if_there_is_one(
    about: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert perform(REFUSING, ["refuse", about, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["message"]) == ("bad_argument", f"{name} must be more than 0, not 0")


def test_an_option_that_means_nothing_to_a_command_is_taken_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert perform(REFUSING, ["refuse", "x", "--left", "a"]) == 2
    assert "x must be more than 0" in capsys.readouterr().err
    assert perform(REFUSING, ["refuse", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--right" in shown
    assert "--left" not in shown
    assert "[default: 60]" in shown
