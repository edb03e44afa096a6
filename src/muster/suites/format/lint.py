"""What is doubtful in a suite that is valid: each finding has a code, and none of them keeps a suite from running."""

import hashlib
import json
from collections.abc import Iterator, Set
from itertools import islice
from pathlib import Path, PurePosixPath

from muster.domain.canonical import JsonObject
from muster.suites.format.forms import CaseForm, CheckForm, HeadForm
from muster.suites.format.reading import SuiteReader
from muster.suites.format.suite import examine
from muster.suites.values.case import CheckKind, Evaluator, tag_key
from muster.text.diagnostics import Diagnostics
from muster.text.document_tree import Flaw, Place, Unreadable
from muster.text.files import opened, shown, whole_text

CANONICAL_TAGS = ("smoke", "happy-path", "error-handling", "edge-case", "certification", "deferred")
MAX_FINDINGS = 500
_TOLERANCE = 0.05 + 1e-9

Finding = tuple[Place, str, str]  # where, its code, what


def lint(path: Path) -> tuple[Flaw, ...]:
    """Return what is doubtful in a suite; raises BadFile when it is not valid."""
    examination = examine(path, MAX_FINDINGS)
    if examination.flaws:
        raise examination.flaws[0].error()
    reading = SuiteReader(path)
    try:
        return tuple(islice(_findings(reading, examination.doubts), MAX_FINDINGS))
    except Unreadable as error:  # it was sound a moment ago
        raise reading.flaw(error).error() from None


def _findings(reading: SuiteReader, doubts: tuple[Flaw, ...]) -> Iterator[Flaw]:
    head = reading.head
    if head is None:  # it was sound a moment ago
        return
    about_head = Diagnostics(reading.file, reading.tree, reading.tree.line)
    yield from _told(about_head, _about_head(head))
    yield from doubts
    smoke = False
    tags = _Tags()
    ids: set[str] = set()
    for written in reading.written():
        if written.form is not None:
            ids.add(written.form.id)
            own = written.form.tags or head.defaults.tags
            smoke = smoke or "smoke" in own
            yield from _told(written.diagnostics, _about_case(written.form, head))
            yield from _told(written.diagnostics, tags.findings(own))
    if not smoke:
        yield about_head.flaw(("cases",), "no case has the tag 'smoke'", "no-smoke-case")
    yield from manifest_findings(reading.path.parent, head.skill_or_agent, ids)


def _told(diagnostics: Diagnostics, findings: Iterator[Finding]) -> Iterator[Flaw]:
    return (diagnostics.flaw(place, message, code) for place, code, message in findings)


def _about_head(head: HeadForm) -> Iterator[Finding]:
    if head.bundle_id is not None or head.bundle_version is not None:
        for name in ("risk_tier", "certification_track"):
            if getattr(head, name) is None:
                yield ("bundle_id",), "bundle-incomplete", f"a bundle needs its {name}"


def _about_case(form: CaseForm, head: HeadForm) -> Iterator[Finding]:
    evaluator = form.evaluator_config.evaluator or head.defaults.evaluator or Evaluator.RULES
    yield from _about_rubric(form, evaluator)
    yield from _about_settings(form, evaluator)
    if evaluator is Evaluator.JUDGE and not form.description.strip():
        yield (), "no-description", "a judged case needs a description: the judge reads it"


def _about_rubric(form: CaseForm, evaluator: Evaluator) -> Iterator[Finding]:
    rubric = form.expected.rubric
    weights = sum(item.weight for item in rubric)
    if rubric and abs(weights - 1) > _TOLERANCE:
        yield ("expected", "rubric"), "rubric-weights", f"the weights add up to {weights:g}, not to 1"
    if evaluator is Evaluator.JUDGE and not rubric:
        yield ("evaluator_config", "evaluator"), "judge-without-rubric", "the judge has no rubric"
    if evaluator is Evaluator.RULES:
        for index, item in enumerate(rubric):
            if item.auto_check is None:
                what = f"{item.id} has no auto_check, so the evaluator rules does not judge it"
                yield ("expected", "rubric", index), "unjudged-item", what


def _about_settings(form: CaseForm, evaluator: Evaluator) -> Iterator[Finding]:
    config = form.evaluator_config
    golden = evaluator is Evaluator.GOLDEN or any(check.kind is CheckKind.GOLDEN_DIFF for check in _checks(form))
    unused = {
        "golden_path": not golden and config.golden_path is not None,
        "golden_threshold": not golden and config.golden_threshold is not None,
        "golden_normalize_whitespace": not golden and config.golden_normalize_whitespace is not None,
        "process_cmd": evaluator is not Evaluator.PROCESS and bool(config.process_cmd),
        "judge_prompt": evaluator is not Evaluator.JUDGE and bool(config.judge_prompt),
    }
    for name in (name for name, is_unused in unused.items() if is_unused):
        yield ("evaluator_config", name), "unused-setting", f"the evaluator {evaluator} does not use it"


def _checks(form: CaseForm) -> Iterator[CheckForm]:
    yield from form.expected.output
    yield from (item.auto_check for item in form.expected.rubric if item.auto_check is not None)


class _Tags:
    """Knows how tags were spelled so far, so that each odd one is told once."""

    def __init__(self) -> None:
        self._spelled = {tag: tag for tag in CANONICAL_TAGS}
        self._told: set[str] = set()

    def findings(self, tags: list[str]) -> Iterator[Finding]:
        """Look at the tags of one case."""
        for index, tag in enumerate(tags):
            usual = self._spelled.setdefault(tag_key(tag), tag)
            if tag != usual and tag not in self._told:
                self._told.add(tag)
                yield ("tags", index), "tag-spelling", f"{tag!r} is another spelling of the tag {usual!r}"
            if tag in tags[:index]:
                yield ("tags", index), "duplicate-tag", f"{tag!r} is listed twice"


NAME = "bundle.manifest.json"
MAX_BYTES = 8_000_000
_SHOWN = 5


def manifest_findings(folder: Path, suite: str, ids: Set[str]) -> Iterator[Flaw]:
    """Return what in the manifest does not match the suite beside it; nothing without a manifest."""
    path = folder / NAME
    if not path.exists():
        return
    try:
        manifest = json.loads(whole_text(path, MAX_BYTES))
        if not isinstance(manifest, dict):
            raise ValueError("must be an object")
    except Unreadable as error:
        yield _finding(path, "manifest-unreadable", error.message, error.line)
    except (ValueError, RecursionError) as error:
        yield _finding(path, "manifest-unreadable", f"not a valid manifest: {error}")
    else:
        if manifest.get("skill_or_agent", suite) == suite:
            yield from _about_cases(path, manifest, ids)
        yield from _about_files(path, manifest)


def _about_cases(path: Path, manifest: JsonObject, ids: Set[str]) -> Iterator[Flaw]:
    listed = manifest.get("case_ids")
    if not isinstance(listed, list):
        return
    named = {str(name) for name in listed}
    for names, words in ((ids - named, "does not list"), (named - ids, "lists cases that the suite does not have:")):
        if names:
            shortened = ", ".join(sorted(names)[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            yield _finding(path, "manifest-cases", f"case_ids {words} {shortened}")


def _about_files(path: Path, manifest: JsonObject) -> Iterator[Flaw]:
    fixtures = manifest.get("fixtures")
    for entry in fixtures if isinstance(fixtures, list) else []:
        name, digest = (entry.get("path"), entry.get("sha256")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(digest, str) or not _is_below(name):
            continue
        try:
            found = _sha256(path.parent / name)
        except Unreadable as error:
            yield _finding(path, "manifest-digest", f"{name}: {error.message}")
            continue
        if found != digest.removeprefix("sha256:").lower():
            yield _finding(path, "manifest-digest", f"the SHA-256 of {name} is {found}, not {digest}")


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\0" not in name


def _sha256(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _finding(path: Path, code: str, message: str, line: int | None = None) -> Flaw:
    return Flaw(file=shown(path), line=line, code=code, message=message)
