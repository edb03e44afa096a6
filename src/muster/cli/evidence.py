"""`muster evidence`: signed archives of suite runs, made, checked and scored again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, group, with_muster
from muster.cli.line import Argument, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with, note

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.evidence import Exported, Verification

KEY_NAME = "evidence.key"

FileArgument = Annotated[Path, Argument(metavar="FILE", help="An archive that `muster evidence export` wrote.")]
PublicKeyOption = Annotated[
    Path | None, Option("--public-key", metavar="KEY", help="The key of whoever should have signed it.")
]

app = group("Signed evidence of suite runs: make it, check it, score it again.")


@command(app, "keygen")
def keygen(
    manner: Manner,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help=f"Where to (<home>/{KEY_NAME}).")
    ] = None,
) -> None:
    """Make a key to sign with, and its public half beside it. Nothing is ever overwritten."""
    from muster.app.evidence import make_keys

    files = make_keys(output or _default_key(manner))
    data = {"private_key": str(files.private), "public_key": str(files.public), "key_id": files.id}
    text = (
        f"private key: {files.private} (keep it to yourself)\n"
        f"public key:  {files.public} (give it to those who are to check)\nkey id:      {files.id}"
    )
    answer(manner, data, lambda console: console.print(text, soft_wrap=True))


@command(app, "export")
def export(
    manner: Manner,
    run: Annotated[
        str, Argument(metavar="RUN", help="An id, the beginning of one, a name, or `last`: the last suite run.")
    ],
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="The archive; a tar file.")],
    key: Annotated[
        Path | None, Option("--key", metavar="KEY", help=f"The private key to sign with (<home>/{KEY_NAME}).")
    ] = None,
) -> None:
    """Write one signed archive of a suite run: suite, prompts, calls, verdicts, figures. Secrets are taken out."""
    from muster.domain.errors import BadConfiguration

    path = key or _default_key(manner)
    if key is None and not path.exists():
        raise BadConfiguration(f"there is no key to sign with at {path}", suggestions=("muster evidence keygen",))

    async def work(muster: "Muster") -> "Exported":
        return await muster.suites.export_evidence(run, output, path)

    _tell_export(manner, with_muster(manner, work))


@command(app, "verify")
def verify(manner: Manner, file: FileArgument, public_key: PublicKeyOption = None) -> int:
    """Check that nothing in an archive was changed since it was signed. Needs no store and no network."""
    from muster.app.evidence import load_public_key
    from muster.app.evidence import verify as check
    from muster.app.views.suites import verification_view

    found = check(file, None if public_key is None else load_public_key(public_key))
    if not found.valid:
        return _tell_invalid(manner, file, found)
    answer(manner, verification_view(file, found), lambda console: console.print(_words(file, found), soft_wrap=True))
    return 0


@command(app, "rescore")
def rescore(
    manner: Manner,
    file: FileArgument,
    public_key: PublicKeyOption = None,
    allow_redacted: Annotated[
        bool, Option("--allow-redacted", help="Let results differ whose texts are without their secrets.")
    ] = False,
) -> int:
    """Check an archive, then read, check and score its replies again and compare. Nobody is asked."""
    from muster.app.evidence import load_public_key
    from muster.app.evidence import rescore as score_again
    from muster.cli.evidence_rescoring import tell_rescoring

    key = None if public_key is None else load_public_key(public_key)
    found = score_again(file, key, allow_redacted=allow_redacted)
    if not found.verification.valid:
        return _tell_invalid(manner, file, found.verification)
    if not found.verification.trusted:
        note(manner, _UNTRUSTED)
    return tell_rescoring(manner, file, found)


_UNTRUSTED = (
    "checked with the key inside of the archive: this proves that nothing was changed since it was signed, "
    "not who signed it; for that, name the signer's key with --public-key"
)


def _default_key(manner: Manner) -> Path:
    from muster.settings import load_settings

    return load_settings(manner.home).home / KEY_NAME


def _tell_export(manner: Manner, done: "Exported") -> None:
    from muster.app.views.suites import exported_view

    removed = sum(sum(kinds.values()) for kinds in done.redacted.values())
    text = f"{done.results:,} results in {done.files} files, {done.bytes:,} bytes, signed: {done.path}"
    text += f"\n{removed:,} secrets were taken out; redaction.json says where" if removed else ""
    answer(manner, exported_view(done), lambda console: console.print(text, soft_wrap=True))


def _tell_invalid(manner: Manner, file: Path, found: "Verification") -> int:
    from muster.app.views.suites import verification_view

    told = {
        "code": "invalid_evidence",
        "message": f"{file} is not valid: {found.where}: {found.what}",
        "suggestions": [],
    }
    return fail_with(manner, told, 1, verification_view(file, found))


def _words(file: Path, found: "Verification") -> str:
    run = found.predicate.get("run") or {}
    head = f"valid: {file}, {len(found.members)} files of run {run.get('id', '?')}, signed with key {found.signer}"
    return f"{head}\n{'signed with the key that was named' if found.trusted else _UNTRUSTED}"
