"""Files that a command is asked to write: never the store's own, never what was written by hand."""

from collections.abc import Iterable
from pathlib import Path

from muster.domain.errors import BadArgument
from muster.reporting.files import require_writable
from muster.settings import DATABASE, HOME

_MARKDOWN = frozenset({".md", ".markdown"})
_WRITTEN_BY_HAND = _MARKDOWN | {
    *(".yaml", ".yml", ".toml", ".ini", ".cfg", ".env", ".key", ".pem", ".pub"),
    *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".java", ".kt", ".c", ".h", ".cc"),
    *(".cpp", ".hpp", ".cs", ".swift", ".scala", ".rb", ".php", ".pl", ".lua", ".r", ".sh", ".bash", ".ps1", ".sql"),
    *(".tf", ".css"),
}
_AS_MARKDOWN = ("markdown", "terminal")


def require_output(path: Path, format_name: str = "", inputs: Iterable[str | None] = ()) -> None:
    """Refuse, before anything is spent, a target that cannot be written or must not be: the store, or an input.

    An earlier report or export of the same name is replaced.
    """
    real = path.resolve()
    if _is_of_a_store(real):
        raise BadArgument(
            f"{path} is in the folder of a store, where only Muster writes",
            suggestions=("name a file outside of it",),
        )
    if any(given is not None and Path(given).exists() and Path(given).resolve() == real for given in inputs):
        raise BadArgument(f"{path} is an input of this command", suggestions=("name another file",))
    by_hand = _WRITTEN_BY_HAND - _MARKDOWN if format_name in _AS_MARKDOWN else _WRITTEN_BY_HAND
    if real.suffix.lower() in by_hand and real.is_file():
        raise BadArgument(
            f"{path} exists and is not overwritten: files that end in {real.suffix} are written by hand",
            suggestions=("name a new file", "or remove this one first"),
        )
    require_writable(path)


def _is_of_a_store(path: Path) -> bool:
    """Return whether a file is that of a store, also of one that is yet to be made, or lies in the folder of one."""
    if path.name.startswith(DATABASE):
        return True
    return any(folder.name == HOME or (folder / DATABASE).exists() for folder in path.parents)
