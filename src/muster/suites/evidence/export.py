"""Writing the evidence of a run. What is written depends on the run and the key alone, never on when or where."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from muster.domain.canonical import Json, canonical
from muster.domain.entry import Entry, EntryKind
from muster.domain.errors import BadArgument, Conflict, StoreFailed, state_verb
from muster.domain.media import digest_of
from muster.domain.run import DRIVEN
from muster.reporting.files import require_folder
from muster.suites.evidence.accounts import BOOKINGS
from muster.suites.evidence.archive import Content, TarWriter
from muster.suites.evidence.councils import HAS_BUDGET, calls_of_child
from muster.suites.evidence.figures import SubjectTallies
from muster.suites.evidence.keys import key_id, public_pem
from muster.suites.evidence.layout import (
    ANSWERS,
    CALLS,
    CASES,
    CHILDREN,
    ENVIRONMENT,
    PUBLIC_KEY,
    README,
    REDACTION,
    RUN,
    STATEMENT,
    STATISTICS,
    SUITE,
    VERDICTS,
    media_name,
    prompt_name,
)
from muster.suites.evidence.verification import sign
from muster.suites.journal import ANSWERS as RECORDED_ANSWERS
from muster.suites.recorded import answers_in
from muster.suites.reports.run import SuiteRun
from muster.suites.values.verdict import CaseResult
from muster.text import typed
from muster.text.secrets.redaction import Redactor

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


FORMAT = 1
PAGE = 20  # entries that are held at a time

_RUN_FACTS = (
    "id", "name", "workload", "spec", "state", "ended_reason", "error", "result", "tags", "seed", "cap", "timeout",
    "concurrency", "dispatch", "origin", "created_at", "started_at", "ended_at", "calls", "spent", "rules",
)  # fmt: skip
_CALL_FACTS = (
    "key", "agent", "state", "attempts", "digest", "request", "reply", "error", "reused_from", "opened_at",
    "settled_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An archive that was written."""

    path: Path
    bytes: int
    files: int
    results: int
    signer: str
    redacted: Mapping[str, Mapping[str, int]]  # by file and kind


async def export_evidence(suite: SuiteRun, path: Path, key: "Ed25519PrivateKey") -> Exported:
    """Write and sign the evidence of a run that is not driven."""
    run = suite.run
    if run.state in DRIVEN:
        raise Conflict(f"run {run.id} {state_verb(run.state)}; evidence can be exported when it has ended")
    with _replacing(path) as file:
        return await _Exporting(suite, file, key).write(path)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Return a new file that takes its place at the path when all of it is written."""
    if path.name in ("", "-") or path.is_symlink() or (path.exists() and not path.is_file()):
        raise BadArgument(f"{path} is not a regular file", suggestions=("name a new file",))
    require_folder(path.parent, path)
    unfinished = path.with_name(path.name + ".part")
    try:
        unfinished.unlink(missing_ok=True)
        handle = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)  # prompts and answers are private
        with os.fdopen(handle, "wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise BadArgument(f"{path} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


class _Exporting:
    """Writes the files of one archive, one after the other."""

    def __init__(self, suite: SuiteRun, file: BinaryIO, key: "Ed25519PrivateKey") -> None:
        self._suite, self._file, self._key = suite, file, key
        self._tar = TarWriter(file)
        self._redactor = Redactor()
        self._redacted: dict[str, Counter[str]] = {}
        self._touched_cases: set[str] = set()  # in which a secret was found
        self._touched_calls: set[str] = set()
        self._touched_files: set[str] = set()
        self._written: set[bytes] = set()  # calls, by the digest of their key: 100,000 keys would fill the memory
        self._figures = SubjectTallies()

    async def write(self, path: Path) -> Exported:
        """Write everything, and sign it."""
        self._tar.put(README, LEAFLET.encode())
        await self._write_cases()
        self._write_suite()
        await self._write_media()
        await self._write_answers()
        await self._write_calls()
        await self._write_children()
        await self._write_verdicts()
        self._write_facts()
        public = self._key.public_key()
        self._tar.put(PUBLIC_KEY, public_pem(public))
        self._tar.put(STATEMENT, sign(self._tar.members, self._predicate(), self._key))
        self._tar.close()
        return Exported(
            path=path,
            bytes=self._file.tell(),
            files=len(self._tar.members),
            results=sum(self._figures.statuses.values()),
            signer=key_id(public),
            redacted={name: dict(found) for name, found in self._redacted.items()},
        )

    async def _write_cases(self) -> None:
        with self._tar.member(CASES) as content:
            async for case in self._suite.cases():
                if self._line(CASES, content, typed.to_builtins(case)):
                    self._touched_cases.add(case.id)
                    self._touched_files.add(case.file)

    def _write_suite(self) -> None:
        snapshot = self._suite.snapshot
        texts = [suite.prompt for suite in snapshot.suites] + [prompt.text for prompt in snapshot.prompts]
        names = {text: prompt_name(number) for number, text in enumerate(dict.fromkeys(filter(None, texts)), 1)}
        for text, name in names.items():
            self._tar.put(name, self._clean(name, text).encode("utf-8", "backslashreplace"))
        suites = [
            # The digest of a suite that held a secret would let anybody find a short one by trying.
            replace(
                suite,
                prompt=names.get(suite.prompt or ""),
                digest="" if suite.file in self._touched_files else suite.digest,
            )
            for suite in snapshot.suites
        ]
        prompts = [replace(prompt, text=names.get(prompt.text, "")) for prompt in snapshot.prompts]
        self._value(SUITE, typed.to_builtins(replace(snapshot, suites=tuple(suites), prompts=tuple(prompts))))

    async def _write_media(self) -> None:
        """Write what requests show, one after the other, as it was sent: what is in it is not looked through."""
        media = self._suite.store.media
        for digest, type_ in await media.named(self._suite.run.id):
            data = await media.read(digest)
            if data is None or digest_of(data) != digest:
                raise StoreFailed(f"the file {digest[:12]} is damaged in the store, so it cannot be evidence")
            self._tar.put(media_name(digest, type_), data)

    async def _write_answers(self) -> None:
        """Write recorded answers in the order of the cases."""
        if self._suite.spec.answers is None:
            return
        entry = await self._suite.store.journal.find(self._suite.run.id, RECORDED_ANSWERS)
        answers = answers_in(None if entry is None else entry.value)
        with self._tar.member(ANSWERS) as content:
            async for case in self._suite.cases():
                for place, text in answers.get(case.id, {}).items():
                    if self._line(ANSWERS, content, {"case": case.id, "place": place, "text": text}):
                        self._touched_cases.add(case.id)

    async def _write_calls(self) -> None:
        """Write calls in the order of the results that they belong to, then those that belong to none."""
        with self._tar.member(CALLS) as content:
            async for result in self._suite.results():
                for entry in await self._suite.calls(keys_of(result)):
                    await self._write_call(content, entry)
            async for entry in self._suite.store.archive.entries(self._suite.run.id, page=PAGE):
                await self._write_call(content, entry)

    def _is_written(self, key: str) -> bool:
        """Return whether a call or a child was written before, and note that it is from now on."""
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:16]
        known = name in self._written
        self._written.add(name)
        return known

    async def _write_call(self, content: Content, entry: Entry) -> None:
        if entry.kind is not EntryKind.CALL or self._is_written(entry.key):
            return
        told, is_touched = await self._call_json(CALLS, entry)
        if is_touched:
            self._touched_calls.add(entry.key)
        content.write(spell(told))

    async def _call_json(self, name: str, entry: Entry) -> tuple[dict[str, Json], bool]:
        """Return what is told of a call, without its secrets, and whether there were any: then it has no digest."""
        attempts = await self._suite.store.archive.attempts_of(entry.run, entry.key)
        bookings = [{"n": one.n, "state": one.state, "cost": one.cost, "lane": one.lane} for one in attempts]
        # Without the blocks of its answer: thinking is for the provider that gave it, and for nobody who judges.
        shown = entry if entry.reply is None else replace(entry, reply=replace(entry.reply, content=None))
        told = self._redactor.json(_chosen(typed.to_builtins(shown), _CALL_FACTS))
        is_touched = bool(self._note(name))
        return {**told, BOOKINGS: bookings, **({"digest": None} if is_touched else {})}, is_touched

    async def _write_children(self) -> None:
        """Write the child runs of a council that judges, each with its calls, in the order of the calls."""
        if self._suite.spec.judge_file is None:
            return
        with self._tar.member(CHILDREN) as content:
            async for result in self._suite.results():
                for judgement in result.judgements:
                    for key in judgement.keys:
                        await self._write_child(content, key)
            async for entry in self._suite.store.archive.entries(self._suite.run.id, page=PAGE):
                if entry.kind is EntryKind.CHILD:
                    await self._write_child(content, entry.key)

    async def _write_child(self, content: Content, key: str) -> None:
        run = None if self._is_written(key) else await self._suite.store.journal.newest_child(self._suite.run.id, key)
        if run is None:
            return
        calls, is_touched = [], False
        for entry in await calls_of_child(self._suite.store, run):
            told, found = await self._call_json(CHILDREN, entry)
            by_another = {} if entry.run == run.id else {"reused_from": entry.run}
            calls.append({**told, **by_another})
            is_touched = is_touched or found
        told = _chosen(typed.to_builtins(run), _RUN_FACTS)
        facts = self._redactor.json(
            {"key": key, HAS_BUDGET: run.has_budget or self._suite.run.parent is not None, "run": told}
        )
        content.write(spell({**facts, "calls": calls}))
        if self._note(CHILDREN) or is_touched:
            self._touched_calls.add(key)

    async def _write_verdicts(self) -> None:
        with self._tar.member(VERDICTS) as content:
            async for result in self._suite.results():
                self._figures.add(result)
                told = self._redactor.json(typed.to_builtins(result))
                found = self._note(VERDICTS)
                touched = result.case in self._touched_cases or not self._touched_calls.isdisjoint(keys_of(result))
                content.write(spell({"result": told, "redacted": bool(found) or touched}))

    def _write_facts(self) -> None:
        self._value(STATISTICS, self._figures.json())
        self._value(RUN, _chosen(typed.to_builtins(self._suite.run), _RUN_FACTS))
        self._value(ENVIRONMENT, dict(self._suite.environment))
        self._tar.put(REDACTION, spell({"files": self._redacted, "left_out": _LEFT_OUT}))

    def _predicate(self) -> dict[str, Json]:
        run, spec = self._suite.run, self._suite.spec
        told: dict[str, Json] = {
            "format": FORMAT,
            "run": _chosen(typed.to_builtins(run), ("id", "name", "state", "created_at", "started_at", "ended_at")),
            "suites": [{"name": suite.name, "cases": suite.cases} for suite in self._suite.snapshot.suites],
            "subjects": [subject.label for subject in self._suite.subjects],
            "epochs": spec.epochs,
            "judge": spec.judge,
            "judge_samples": spec.judge_samples,
            **({} if spec.council is None else {"council": spec.council}),
            "results": dict(self._figures.statuses),
            "environment": dict(self._suite.environment),
        }
        return dict(self._redactor.json(told))

    def _value(self, name: str, value: Json) -> None:
        with self._tar.member(name) as content:
            self._line(name, content, value)

    def _line(self, name: str, content: Content, value: Json) -> bool:
        """Write a value without its secrets, and say whether there were any."""
        content.write(spell(self._redactor.json(value)))
        return bool(self._note(name))

    def _clean(self, name: str, text: str) -> str:
        clean = self._redactor.text(text)
        self._note(name)
        return clean

    def _note(self, name: str) -> dict[str, int]:
        found = self._redactor.found()
        if found:
            self._redacted.setdefault(name, Counter()).update(found)
        return found


_LEFT_OUT = "digests of suites and requests that held a secret: with them, one could find a short one by trying"


def keys_of(result: CaseResult) -> tuple[str, ...]:
    """Return the keys of all calls that were made for a result, in order."""
    return (*result.keys, *(key for judgement in result.judgements for key in judgement.keys))


def _chosen(value: Any, names: tuple[str, ...]) -> dict[str, Json]:
    return {name: value[name] for name in names}


LEAFLET = """\
Evidence of a suite run
=======================

This archive says what a suite of behavioural tests asked one or more AI agents, what they answered, and what checks and
judges said about the answers. It was written by Muster and signed with an Ed25519 key.

  run.json             the run: what was asked for, when, how it ended, what it cost
  suite.json           the suites and prompts, and where their texts stand
  prompts/             the system prompts under test
  cases.jsonl          every case with everything that was expected of it, one per line
  answers.jsonl        recorded answers, if such were scored instead of asking anybody
  calls.jsonl          every request with its reply: agents, judges, commands
  children.jsonl       the run of every council that judged, with all its requests and replies, if one did
  verdicts.jsonl       every result: status, score, checks, rubric items, judgements
  statistics.json      figures over the results
  environment.json     versions at the time of the run
  redaction.json       how many secrets were taken out of which file; a mark such as [redacted:jwt:1] stands in
                       their place, with the same number wherever the same secret stood
  public-key.pem       the key that belongs to the signature
  statement.dsse.json  an in-toto statement with the SHA-256 of all files above, in a signed DSSE envelope

All JSON is spelled with sorted names and without spaces. Nothing in here depends on when it was exported.

With Muster
-----------

  muster evidence verify FILE --public-key KEY.pub
  muster evidence rescore FILE

The first checks every byte of the archive. The second reads what judges and commands replied, does checks, scores and
figures again, and counts the verdicts against the cases. The key inside of the archive proves that nothing was changed
since it was signed. It does not prove who signed: for that, get the public key from the signer in another way.

By hand
-------

Unpack the archive, go into the folder, and run this with Python and its package "cryptography":

    import base64, hashlib, json, pathlib
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    envelope = json.loads(pathlib.Path("statement.dsse.json").read_bytes())
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    key = load_pem_public_key(pathlib.Path("public-key.pem").read_bytes())
    key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), signed)
    for file in json.loads(payload)["subject"]:
        found = hashlib.sha256(pathlib.Path(file["name"]).read_bytes()).hexdigest()
        print("ok     " if found == file["digest"]["sha256"] else "CHANGED", file["name"])
"""


def spell(value: Json) -> bytes:
    """Return one line of JSON; half a surrogate pair, which is no UTF-8, is escaped with the whole line."""
    line = canonical(value)
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        line = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return line + b"\n"
