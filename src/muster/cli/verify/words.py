"""A verification in a few words for people: how much it is, what is left out, and why there is nothing to do."""

from collections.abc import Iterator, Sequence

from muster.app.verify.plan import VerifyPlan
from muster.app.verify.request import Prepared, StartedVerification
from muster.app.verify.values import FileSelection, LeftOut
from muster.app.views.errors import nothing_to_verify, some_left_out, why_nothing
from muster.app.views.verify import nothing_view
from muster.cli.terminal.batches import calls
from muster.cli.terminal.output import CommonOptions, answer, fail_with
from muster.text.words import count, one_line

FEW = 3
MAX_GROUPS = 5
NAMED_OF_A_GROUP = 2
MAX_PATH = 60


def first_words(started: StartedVerification) -> str:
    """Return what has begun."""
    found, prepared = started.plan, started.prepared
    if found is None:  # it was begun before
        return "what was changed is being verified"
    lines = [f"{extent(found, prepared)}, agents from {prepared.agents_file}"]
    if found.left_out:
        lines.append(f"left out: {', '.join(some_left_out(found.left_out, FEW))}")
    return "\n".join([*lines, *redactions(found)])


def extent(found: VerifyPlan, prepared: Prepared) -> str:
    """Return how much it is: files, bytes of those that are allowed, waves, agents, calls."""
    limit = prepared.spec.limits.total_bytes
    size = f"{kilobytes(found.bytes)} of {kilobytes(limit)} kB"
    who = f"{count(len(found.waves), 'wave')}, {count(len(found.parts), 'agent')}, {calls(found.all.calls)}"
    return f"{count(found.files, 'file')}, {size}, {who}"


def kilobytes(number: int) -> str:
    """Write a number of bytes in thousands; what is there is never nothing."""
    return f"{number / 1000:.1f}" if number < 10_000 else f"{number / 1000:,.0f}"


def redactions(found: VerifyPlan) -> Iterator[str]:
    """Return that secrets are taken out."""
    if found.redacted:
        are = "is" if found.redacted == 1 else "are"
        yield f"{count(found.redacted, 'secret')} {are} removed before the files are sent"


def left_out_by_why(files: Sequence[LeftOut]) -> str:
    """Count the files that are left out by why, the most first, and name some where that is worth a word."""
    groups: dict[str, list[str]] = {}
    for one in files:
        groups.setdefault(one.why.partition(":")[0], []).append(one.path)
    told = sorted(groups.items(), key=lambda group: -len(group[1]))
    parts = [f"{len(paths):,} {why} ({_some(paths)})" for why, paths in told[:MAX_GROUPS]]
    more = sum(len(paths) for _, paths in told[MAX_GROUPS:])
    return f"{len(files):,} left out: {', '.join([*parts, *([f'{more:,} more'] if more else [])])}"


def _some(paths: Sequence[str]) -> str:
    named = [one_line(path, MAX_PATH) for path in paths[:NAMED_OF_A_GROUP]]
    return ", ".join([*named, "…"] if len(paths) > NAMED_OF_A_GROUP else named)


def tell_nothing(common: CommonOptions, selection: FileSelection, prepared: Prepared, *, allowed: bool) -> int:
    """Print that there is nothing to verify, and why; a success only if that is allowed."""
    why = why_nothing(selection, prepared)
    data = nothing_view(why, prepared)
    if not allowed:
        return fail_with(common, nothing_to_verify(selection, prepared), 1, data)
    named = (f"  left out: {one}" for one in some_left_out(prepared.left_out))
    text = "\n".join([f"nothing was verified: {why}", *named])
    answer(common, data, lambda console: console.print(text, soft_wrap=True))
    return 0
