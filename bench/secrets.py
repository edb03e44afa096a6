"""How many secrets of many services are recognised, how many false alarms there are in packages, and at what speed.

    python -m bench.secrets [--each 20] [--packages 10] [--show]

Recall is over made-up secrets of the formats that issuers document (tests/text/secrets/samples.py); an alarm is what
the checker of secrets reports in the largest packages that are installed here. `--show` prints the lines of alarms.
"""

import argparse
import re
import string
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.text.secrets.samples import BY_FORM, BY_NAME, PASSWORDS, samples

from muster.text.secrets.redaction import GUESSED, Redactor

SUFFIXES = frozenset({".py", ".pyi", ".js", ".ts", ".json", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".sh", ".html"})
MAX_BYTES = 2_000_000
LENGTHS = (8, 10, 12, 16)


def recall(each: int) -> Iterator[str]:
    """Tell how many made-up secrets are taken out, and of which services one is missed."""
    drawn, missed, guessed = 0, Counter[str](), 0
    for service, secret, text in samples(each):
        clean, found = Redactor().code_and_secrets(text)
        drawn += 1
        missed[service] += secret in clean
        guessed += bool(found) and all(one.kind in GUESSED for one in found)
    total = sum(missed.values())
    yield f"{len(BY_FORM) + len(BY_NAME)} formats, {drawn:,} secrets: {1 - total / drawn:.2%} taken out"
    yield f"  only by the name beside them: {guessed:,}; missed: {dict(+missed)}"


def passwords(each: int) -> Iterator[str]:
    """Tell how many passwords of letters and digits are taken out, wherever people write them."""
    random, alphabet = Random(0), string.ascii_letters + string.digits
    for length in LENGTHS:
        drawn = [(text, "".join(random.choices(alphabet, k=length))) for text in PASSWORDS for _ in range(10 * each)]
        missed = Counter(text for text, secret in drawn if secret in Redactor().code(text.format(secret)))
        yield f"passwords of {length} characters, {len(drawn):,}: {1 - missed.total() / len(drawn):.1%} taken out"
        yield f"  missed most: {missed.most_common(1)}"


def packages(number: int) -> list[Path]:
    """Return the largest packages that are installed."""
    top = Path(sysconfig.get_paths()["purelib"])
    folders = [one for one in top.iterdir() if one.is_dir() and not one.name.endswith(("-info", "__pycache__"))]
    return sorted(folders, key=lambda one: sum(map(_size, _files(one))), reverse=True)[:number]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and _size(path) <= MAX_BYTES)


def _size(path: Path) -> int:
    return path.stat().st_size


def alarms(number: int, *, show: bool) -> Iterator[str]:
    """Tell how many alarms there are in packages, and how quickly their texts are searched."""
    lines = characters = 0
    seconds, kinds = 0.0, Counter[str]()
    for package in packages(number):
        for path in _files(package):
            text = re.sub(r"\r\n?", "\n", path.read_text(encoding="utf-8", errors="replace"))
            lines, characters = lines + text.count("\n") + 1, characters + len(text)
            started = time.process_time()
            _, found = Redactor().code_and_secrets(text, path.name)
            seconds += time.process_time() - started
            kinds.update(one.kind for one in found)
            if show:
                yield from (f"  {one.kind} {path}:{one.line} {text.splitlines()[one.line - 1][:160]}" for one in found)
    sure = sum(count for kind, count in kinds.items() if kind not in GUESSED)
    rate, sure_rate = sum(kinds.values()) / lines * 100_000, sure / lines * 100_000
    yield f"{number} packages, {lines:,} lines: {sure_rate:.1f} alarms in 100,000 lines by form, {rate:.1f} in all"
    yield f"  {dict(kinds.most_common())}; {characters / seconds / 1e6:.1f} million characters a second"


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.secrets")
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--packages", type=int, default=10)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    for line in (*recall(given.each), *passwords(given.each), *alarms(given.packages, show=given.show)):
        print(line)


if __name__ == "__main__":
    main()
