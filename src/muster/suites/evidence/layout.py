"""The files of an evidence archive, and what is wrong with one."""

import re

README = "README.txt"
CASES = "cases.jsonl"
SUITE = "suite.json"
PROMPTS = "prompts/"
MEDIA = "media/"  # images and documents that its requests show, by the digests of their bytes
ANSWERS = "answers.jsonl"  # only of a run that scored recorded answers
CALLS = "calls.jsonl"
CHILDREN = "children.jsonl"  # only of a run that has child runs: councils that judge
VERDICTS = "verdicts.jsonl"
STATISTICS = "statistics.json"
RUN = "run.json"
ENVIRONMENT = "environment.json"
REDACTION = "redaction.json"
PUBLIC_KEY = "public-key.pem"
STATEMENT = "statement.dsse.json"  # always the last

MAX_MEMBERS = 10_000
MAX_STATEMENT = 16 << 20  # bytes, of what is read as a whole
MAX_KEY = 4096
MAX_LINE = 256 << 20

NAME = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9-]*(?:\.[a-z]+)+|prompts/[0-9]{4}\.txt|media/[0-9a-f]{64}\.(?:png|jpeg|gif|webp|pdf)"
)


def prompt_name(number: int) -> str:
    """Name the file of a prompt."""
    return f"{PROMPTS}{number:04}.txt"


def media_name(digest: str, type_: str) -> str:
    """Name the file of an image or a document."""
    return f"{MEDIA}{digest}.{type_.partition('/')[2]}"


class EvidenceFault(Exception):
    """Something in an archive is not as it was signed; never leaves this room."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what = where, what
