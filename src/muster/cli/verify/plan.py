"""`muster verify plan`: what a verification would do and cost; spends nothing and stores nothing."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from muster.app.verifications import Prepared
from muster.app.verify_plan import VerifyPlan
from muster.app.verify_values import FileSelection, LeftOut
from muster.app.views.verify import left_out_view
from muster.cli.batches.words import calls
from muster.cli.frame import command, with_muster
from muster.cli.line import Group, Option
from muster.cli.terminal.output import OutputOptions, answer, fail_with
from muster.cli.verify.options import VerifyArguments, VerifyDispatchOptions, asked, verify_sent
from muster.text.words import count, one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from muster.app import Muster
    from muster.app.verify_plan import PlannedAgent


WIDE, NARROW = 24, 16  # columns for the names of agents, and for whom they ask
LEAST_MISSED = ("calls\nat most", "tokens", "files", "asks", "calls", "wave", "about,\nat least")


def register(app: Group) -> None:
    """Add the command."""
    command(app, "plan")(plan)


@verify_sent
@asked
def plan(
    manner: OutputOptions,
    asked: VerifyArguments,
    sent: VerifyDispatchOptions,
    budget: Annotated[str | None, Option("--budget", metavar="USD", help="Say whether it would be enough.")] = None,
    allow_unpriced: Annotated[
        bool, Option("--allow-unpriced", help="Count models whose price is not known as free.")
    ] = False,
) -> int:
    """Say what would be verified by whom, in how many calls, and what that could cost."""
    from muster.cli.suites.plan import parse_cap

    cap = parse_cap(budget)

    async def work(muster: "Muster") -> int:
        from muster.app.views.verify import verify_plan_view
        from muster.cli.verify.order import preparing

        async with preparing(muster, asked, sent) as prepared:
            if prepared.is_empty:
                selection = asked.selection(muster.settings.verify.pending)
                return tell_nothing(manner, selection, prepared, allowed=asked.allow_empty)
            found = muster.verify.plan(prepared.spec, sent.sending.dispatch)
            sent.require_batches(found.parts)
            data = verify_plan_view(found, prepared, cap)
            answer(manner, data, lambda console: _tell(console, found, prepared, cap))
            return 0

    return with_muster(manner, work, allow_unpriced=allow_unpriced, keyless=True)


def _tell(console: "Console", found: "VerifyPlan", prepared: "Prepared", cap: int | None) -> None:
    from muster.cli.terminal.output import clean

    console.print(clean(f"{extent(found, prepared)}, agents from {prepared.agents_file}"), soft_wrap=True)
    console.print(plan_table(found, console.width))
    for line in _notes(found, cap):
        console.print(clean(line), soft_wrap=True)


def plan_table(found: "VerifyPlan", width: int) -> "Table":
    """Draw who would be asked; what there is no room for is left out, but never names and the most it can cost."""
    from muster.cli.suites.plan import most_words
    from muster.cli.terminal.table import Column, fitted
    from muster.domain.money import show_usd

    parts, total = found.parts, found.all
    loads = [*((part.load, not part.verifier.command) for part in parts), (total, True)]
    columns = [
        Column("wave", [*(str(part.verifier.wave) for part in parts), ""]),
        Column("agent", [*(part.verifier.name for part in parts), "together"], right=False, folds=True, least=WIDE),
        Column("asks", [*(_whom(part) for part in parts), ""], right=False, folds=True, least=NARROW),
        Column("files", [f"{number:,}" for number in (*(part.files for part in parts), found.files)]),
        Column("calls", [f"{load.calls:,}" for load, _ in loads]),
        Column("calls\nat most", [f"{load.most_calls:,}" for load, _ in loads]),
        Column("tokens", [f"{load.tokens:,}" if paid else "" for load, paid in loads]),
        Column("about,\nat least", [show_usd(load.least) if paid else "" for load, paid in loads]),
        Column("at most", [most_words(load) if paid else "" for load, paid in loads]),
    ]
    table = fitted(columns, LEAST_MISSED, width)
    for row in table.rows[-2:-1]:
        row.end_section = True  # the sum stands below a line
    return table


def _whom(part: "PlannedAgent") -> str:
    import shlex

    from muster.cli.terminal.output import clean

    one = part.verifier
    if one.command:
        return clean(shlex.join(one.command))
    return clean(one.model) + (" in batches" if part.batch else "")


def _notes(found: "VerifyPlan", cap: int | None) -> list[str]:
    from muster.cli.suites.plan import bound_words

    lines = [*(f"left out: {one}" for one in left_out(found.left_out)), *redactions(found)]
    if any(not part.verifier.command for part in found.parts):
        lines.append("the most counts one repair for each call, which models seldom need; later waves may not begin")
    return [*lines, *bound_words(found.all, cap)]


NOTHING = "nothing_to_verify"
MOST_NAMED = 10
FEW = 3
MOST_GROUPS = 5
NAMED_OF_A_GROUP = 2
LONGEST_PATH = 60


def first_words(found: VerifyPlan, prepared: Prepared) -> str:
    """Say what is about to happen, before anything is spent."""
    lines = [f"{extent(found, prepared)}, agents from {prepared.agents_file}"]
    if found.left_out:
        lines.append(f"left out: {', '.join(left_out(found.left_out, FEW))}")
    return "\n".join([*lines, *redactions(found)])


def extent(found: VerifyPlan, prepared: Prepared) -> str:
    """Say how much it is: files, bytes of those that are allowed, waves, agents, calls."""
    limit = prepared.spec.limits.total_bytes
    size = f"{kilobytes(found.bytes)} of {kilobytes(limit)} kB"
    who = f"{count(len(found.waves), 'wave')}, {count(len(found.parts), 'agent')}, {calls(found.all.calls)}"
    return f"{count(found.files, 'file')}, {size}, {who}"


def kilobytes(number: int) -> str:
    """Write a number of bytes in thousands; what is there is never nothing."""
    return f"{number / 1000:.1f}" if number < 10_000 else f"{number / 1000:,.0f}"


def redactions(found: VerifyPlan) -> Iterator[str]:
    """Say that secrets are taken out."""
    if found.redacted:
        are = "is" if found.redacted == 1 else "are"
        yield f"{count(found.redacted, 'secret')} {are} taken out before anybody sees the files"


def left_out(files: Sequence[LeftOut], most: int = MOST_NAMED) -> list[str]:
    """Name some files that are left out, each with why, and count the others."""
    more = [f"and {len(files) - most:,} more"] if len(files) > most else []
    return [*(f"{one.path} ({one.why})" for one in files[:most]), *more]


def left_out_by_why(files: Sequence[LeftOut]) -> str:
    """Count the files that are left out by why, the most first, and name some where that is worth a word."""
    groups: dict[str, list[str]] = {}
    for one in files:
        groups.setdefault(one.why.partition(":")[0], []).append(one.path)
    told = sorted(groups.items(), key=lambda group: -len(group[1]))
    parts = [f"{len(paths):,} {why} ({_some(paths)})" for why, paths in told[:MOST_GROUPS]]
    more = sum(len(paths) for _, paths in told[MOST_GROUPS:])
    return f"{len(files):,} left out: {', '.join([*parts, *([f'{more:,} more'] if more else [])])}"


def _some(paths: Sequence[str]) -> str:
    named = [one_line(path, LONGEST_PATH) for path in paths[:NAMED_OF_A_GROUP]]
    return ", ".join([*named, "…"] if len(paths) > NAMED_OF_A_GROUP else named)


def tell_nothing(manner: OutputOptions, selection: FileSelection, prepared: Prepared, *, allowed: bool) -> int:
    """Say that there is nothing to verify, and why; a success only if that is allowed."""
    why, named = _why(selection, prepared), left_out(prepared.left_out)
    data = {"verified": 0, "why": why, "left_out": [left_out_view(one) for one in prepared.left_out]}
    if allowed:
        text = "\n".join([f"nothing was verified: {why}", *(f"  left out: {one}" for one in named)])
        answer(manner, data, lambda console: console.print(text, soft_wrap=True))
        return 0
    ways = [*(f"left out: {one}" for one in named), "with --allow-empty this is no failure"]
    return fail_with(manner, {"code": NOTHING, "message": f"nothing to verify: {why}", "suggestions": ways}, 1, data)


def _why(selection: FileSelection, prepared: Prepared) -> str:
    if prepared.left_out:
        number = len(prepared.left_out)
        return "the only file is left out" if number == 1 else f"all {number:,} files are left out"
    if selection.changed:
        return f"no file differs from {selection.ref or 'HEAD'}"
    if selection.staged:
        return "no file is staged"
    if selection.pending is not None:
        return f"there is no marker in {selection.pending}"
    return f"there is no file in {', '.join(selection.paths)}"
