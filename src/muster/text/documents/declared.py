"""A file in which a user declares something, in YAML or TOML: read whole, bounded, with lines for what is wrong."""

from collections.abc import Sequence
from pathlib import Path

from muster.domain.errors import BadFile, NotFound
from muster.text.document_tree import Flaw, Items, Map, Unreadable
from muster.text.documents.readers import READERS
from muster.text.documents.toml_reader import TomlFile
from muster.text.documents.yaml_reader import YamlFile
from muster.text.files import opened, shown

MAX_BYTES = 4_000_000


def require_file(path: Path, *, kind: str) -> None:
    """Raise NotFound for a file that is not there, with the command that creates one of its kind."""
    if not path.exists():
        raise NotFound(f"no such file: {path}", suggestions=(f"create one with muster init NAME --kind {kind}",))


def read_tree(path: Path, *, what: str, listed: str) -> Map:
    """Read a file that declares `what`, whose long list has the key `listed`; raises Unreadable."""
    kind = READERS.get(path.suffix.lower())
    if kind is None:
        raise Unreadable(f"{what} must be one of {', '.join(READERS)}")
    with opened(path) as file:
        if len(file.read(MAX_BYTES + 1)) > MAX_BYTES:
            raise Unreadable(f"larger than {MAX_BYTES:,} bytes, the maximum for such a file")
    return YamlFile(path).head() if kind is YamlFile else _toml_tree(TomlFile(path, listed), listed)


def _toml_tree(source: TomlFile, listed: str) -> Map:
    tree = source.head()
    if listed in tree:
        items = Items(tree.lines[listed])
        for item, line in source.cases():
            items.add(item, line)
        tree.put(listed, items, items.line)
    return tree


def unreadable_flaw(path: Path, error: Unreadable) -> Flaw:
    """Return the flaw of a file that cannot be read at all."""
    return Flaw(file=shown(path), line=error.line, column=error.column, message=error.message)


def bad_file(flaws: Sequence[Flaw]) -> BadFile:
    """Return the error that tells all flaws of a file."""
    first, *rest = flaws
    message = ": ".join(part for part in (first.case, first.message) if part)
    return BadFile(first.file, "\n".join([message, *map(str, rest)]), line=first.line, column=first.column)
