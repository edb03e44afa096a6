"""The checker of secrets: what was taken out of verified code is a finding, whoever else is asked. It needs no model.

A finding has the kind of a secret and its place, and nothing that was made from the secret. Pure.
"""

from collections.abc import Collection, Iterator, Sequence

from muster.checks.findings.assessing import assess
from muster.domain.finding import Examined, Finding, Severity
from muster.domain.redaction import GUESSED, Secret
from muster.domain.source import Source
from muster.domain.verification import AllowedSecret, Kind, Verifier
from muster.domain.waves import SECRETS, AgentReport

THRESHOLDS = ("critical == 0", "high == 0")
_HARDCODED = "CWE-798"


def check_secrets(sources: Sequence[Source], allowed: Collection[AllowedSecret], *, wave: int) -> AgentReport | None:
    """Return the report about secrets in files; None when there is none that is not allowed."""
    findings = tuple(finding for source in sources for finding in _found_in(source, allowed))
    if not findings:
        return None
    lines = sum(len(source.lines) for source in sources)
    verifier = Verifier(name=SECRETS, wave=wave, kind=Kind.COMMAND, thresholds=THRESHOLDS)
    return assess(verifier, [Examined(findings=findings, lines=lines)], chunks=1)


def not_allowed(source: Source, allowed: Collection[AllowedSecret]) -> Iterator[Secret]:
    """Return the secrets of a file that no exception covers."""
    places = {(one.line, one.kind) for one in allowed if one.file == source.path}
    return (one for one in source.secrets if (one.line, one.kind) not in places)


def _found_in(source: Source, allowed: Collection[AllowedSecret]) -> Iterator[Finding]:
    for secret in not_allowed(source, allowed):
        guessed = secret.kind in GUESSED
        yield Finding(
            file=source.path,
            line=secret.line,
            end_line=secret.line,
            severity=Severity.LOW if guessed else Severity.HIGH,
            finding=_words(secret.kind, guessed=guessed),
            fix="Take it out, replace it where it is valid, and read it from the environment or a store of secrets. "
            f"If it is not a secret: muster verify allow-secret {source.path}:{secret.line}",
            # Without a weakness a guess keeps a rule of its own, which no viewer shows as bad as a known form.
            cwe="" if guessed else _HARDCODED,
            rule=secret.kind,
        )


def _words(kind: str, *, guessed: bool) -> str:
    if guessed:
        return f"Something that looks like a secret stands in the code ({kind}): judged by the name beside it."
    return f"A secret stands in the code ({kind}): judged by its form."
