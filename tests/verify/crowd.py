"""A repository of three hundred files, and the five shipped agents split over two providers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster.verify.declaration.declaration import shipped
from muster.verify.declaration.verification import Limits, Verification, Verifier
from muster.verify.sources.markers import read_markers
from tests.verify.stage import ANTHROPIC, CLEAN, GOOD_REVIEW, GOOD_TESTS, OPENAI, PENDING, a_report, said

FILES = 300
LINES = 24
LIMITS = Limits(chunk_bytes=4_500)  # some files to a chunk: many chunks
AT_OPENAI = ("hallucination-detector", "test-generator")
OF_WAVES = {1: 3, 2: 2}  # agents
UNHURRIED = 1.5  # seconds without a new call after which a batch leaves: a busy machine must not make two of one

LOW = a_report(said("f007.py", 5, "low"), said("f007.py", 9, "medium"))
SCRIPT: Mapping[str, Any] = {
    "rules": [
        {"text": "(?s) f007[.]py lines.*You audit code", "answer": LOW},
        {"text": "(?s)# Your task.*You review code", "answer": GOOD_REVIEW},
        {"text": "(?s)# Your task.*You find out what of this code is not tested", "answer": GOOD_TESTS},
        {"answer": CLEAN},
    ]
}


def write_crowd(root: Path, files: int = FILES) -> tuple[str, ...]:
    """Write the files, and a marker for each tenth of them; gives their names."""
    (root / PENDING).mkdir(parents=True)
    names = [f"f{number:03d}.py" for number in range(files)]
    for number, name in enumerate(names):
        lines = [f"def function_{number}_{line}():\n    return {number * line}\n" for line in range(LINES // 2)]
        (root / name).write_text("".join(lines), encoding="utf-8")
        if number % 10 == 0:
            (root / PENDING / f"{number:03d}.txt").write_text(f"{name}\n", encoding="utf-8")
    return tuple(names)


def verifiers() -> tuple[Verifier, ...]:
    """Give the shipped agents, each with a model of one of the two providers."""
    return tuple(
        replace(one, model=OPENAI if one.name in AT_OPENAI else ANTHROPIC, max_tokens=500)
        for one in shipped().verifiers(ANTHROPIC)
    )


def crowd_spec(root: Path, files: tuple[str, ...]) -> Verification:
    """Have all of it verified."""
    markers = read_markers(root / PENDING, root)
    return Verification(root=str(root), files=files, verifiers=verifiers(), limits=LIMITS, markers=markers)
