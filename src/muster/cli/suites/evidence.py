"""`muster evidence`: signed archives of suite runs, made, checked and scored again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.app import Muster
from muster.app.project.files import Project
from muster.app.suites.evidence import (
    ArchiveVerification,
    Difference,
    Exported,
    FigureDifference,
    Rescoring,
)
from muster.app.suites.values import WORDS
from muster.app.views.errors import (
    REDACTED,
    evidence_error,
    rescoring_error,
    rescoring_suggestions,
    rescoring_words,
)
from muster.app.views.evidence import exported_view, keys_view, rescoring_view, verification_view
from muster.cli.line import Argument, Option
from muster.cli.session import with_muster
from muster.cli.suites.options import SuiteRunReference
from muster.cli.terminal.output import CommonOptions, answer, clean, fail_with, note
from muster.domain.case import Status
from muster.text.words import count, one_line

FileArgument = Annotated[Path, Argument(metavar="FILE", help="An archive written by `muster evidence export`.")]
PublicKeyOption = Annotated[
    Path | None,
    Option(
        "--public-key", metavar="KEY", shown="the key in the archive", help="The public key of the expected signer."
    ),
]

KEY_SHOWN = "evidence.key in the folder of the store"


def keygen(
    common: CommonOptions,
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="FILE", shown=KEY_SHOWN, help="The file to write."),
    ] = None,
) -> None:
    """Create a key pair for signing. Existing files are never overwritten."""
    files = Project(common.home).evidence.make_keys(output)
    text = (
        f"private key: {files.private} (keep it secret)\n"
        f"public key:  {files.public} (give it to whoever verifies archives)\nkey id:      {files.id}"
    )
    answer(common, keys_view(files), lambda console: console.print(text, soft_wrap=True))


def export(
    common: CommonOptions,
    run: SuiteRunReference,
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="The archive to write, a tar file.")],
    key: Annotated[
        Path | None,
        Option("--key", metavar="KEY", shown=KEY_SHOWN, help="The private key to sign with."),
    ] = None,
) -> None:
    """Write a signed archive of a suite run: suite, prompts, calls, verdicts, metrics. Secrets are removed."""

    async def work(muster: Muster) -> Exported:
        return await muster.suites.export_evidence(run, output, key)

    _tell_export(common, with_muster(common, work))


def verify(common: CommonOptions, file: FileArgument, public_key: PublicKeyOption = None) -> int:
    """Check that an archive was not changed since it was signed. Needs no store and no network."""
    found = Project(common.home).evidence.verify(file, public_key)
    error = evidence_error(file, found)
    if error is not None:
        return fail_with(common, error, 1, verification_view(file, found))
    answer(common, verification_view(file, found), lambda console: console.print(_words(file, found), soft_wrap=True))
    return 0


def rescore(
    common: CommonOptions,
    file: FileArgument,
    public_key: PublicKeyOption = None,
    allow_redacted: Annotated[
        bool, Option("--allow-redacted", help="Accept different results where secrets were removed.")
    ] = False,
) -> int:
    """Check an archive, then score its replies again and compare. No agent is called."""
    found = Project(common.home).evidence.rescore(file, public_key, allow_redacted=allow_redacted)
    error = evidence_error(file, found.verification)
    if error is not None:
        return fail_with(common, error, 1, verification_view(file, found.verification))
    if not found.verification.trusted:
        note(common, _UNTRUSTED)
    return tell_rescoring(common, file, found)


_UNTRUSTED = (
    "checked with the key in the archive: this proves that nothing was changed since it was signed, "
    "not who signed it; for that, name the signer's key with --public-key"
)


def _tell_export(common: CommonOptions, done: Exported) -> None:
    removed = sum(sum(kinds.values()) for kinds in done.redacted.values())
    text = f"{count(done.results, 'result')} in {count(done.files, 'file')}, {done.bytes:,} bytes, signed: {done.path}"
    text += f"\n{count(removed, 'secret')} removed; redaction.json lists where" if removed else ""
    answer(common, exported_view(done), lambda console: console.print(text, soft_wrap=True))


def _words(file: Path, found: ArchiveVerification) -> str:
    run = found.predicate.get("run") or {}
    files = count(len(found.members), "file")
    head = f"valid: {file}, {files} of run {run.get('id', '?')}, signed with key {found.signer}"
    return f"{head}\n{'signed with the given key' if found.trusted else _UNTRUSTED}"


MAX_SHOWN = 50
MAX_KEYS = 5
MAX_CHARACTERS = 120  # of a line that others wrote


def tell_rescoring(common: CommonOptions, file: Path, found: Rescoring) -> int:
    """Print what is the same and what is not; gives the exit code."""
    data, error = rescoring_view(file, found), rescoring_error(found)
    if common.json and error is not None:
        return fail_with(common, error, 1, data)
    answer(common, data, lambda console: _tell(console, found))
    return 0 if error is None else 1


def _tell(console: Console, found: Rescoring) -> None:
    console.print(Text(rescoring_words(found), style="bold green" if found.ok else "bold red"), soft_wrap=True)
    for title, redacted in (("different", False), (REDACTED, True)):
        chosen = [one for one in found.differences if one.redacted is redacted]
        if chosen:
            console.print(_table(title, chosen))
    for figure in found.figures[:MAX_SHOWN]:
        console.print(Text(clean(_figure(figure))), soft_wrap=True)
    for suggestion in rescoring_suggestions(found):
        console.print(Text(suggestion), soft_wrap=True)
    if found.unmentioned:
        console.print(Text(_unmentioned(found)), soft_wrap=True)
    for what in found.unproven[:MAX_SHOWN]:
        console.print(Text(f"rests on the signature: {clean(one_line(what, 2 * MAX_CHARACTERS))}"), soft_wrap=True)


def _figure(figure: FigureDifference) -> str:
    was, now = (one_line(str(value), MAX_CHARACTERS) for value in (figure.was, figure.now))
    return f"{one_line(figure.where, MAX_CHARACTERS)} is {was}, and the results come to {now}"


def _unmentioned(found: Rescoring) -> str:
    keys = ", ".join(one_line(clean(key), MAX_CHARACTERS) for key in found.unmentioned_keys[:MAX_KEYS])
    more = ", …" if found.unmentioned > MAX_KEYS else ""
    return f"calls that no verdict mentions: {found.unmentioned:,} ({keys}{more})"


def _table(title: str, differences: Sequence[Difference]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for name in ("case", "subject", "epoch", "recorded", "now", "why"):
        table.add_column(name, overflow="fold")
    for one in differences[:MAX_SHOWN]:
        was, now = _ending(one.was, one.was_score), _ending(one.now, one.now_score)
        why = Text(clean(one_line(one.why, 2 * MAX_CHARACTERS)))
        table.add_row(Text(clean(one.case)), Text(clean(one.subject)), str(one.epoch), was, now, why)
    return table


def _ending(status: Status | None, score: float | None) -> str:
    return "–" if status is None else f"{WORDS[status]} {_score(score)}"


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"
