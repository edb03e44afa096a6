"""The help of commands and groups, as it is printed."""

import shutil
import textwrap
from collections.abc import Iterable, Sequence

from muster.cli.line.parameters import HELP, Parameter

WIDTH = 80
COLUMN = 30  # where the words about an option begin, at the latest

_HELP = (HELP, "Show this message and exit.")


def help_of_command(path: str, about: str, parameters: Sequence[Parameter], width: int | None = None) -> str:
    """Write what a command does and takes."""
    tables = {"Arguments": _arguments(parameters), "Options": _options(parameters)}
    return _page([usage_of_command(path, parameters)], about, tables, width)


def usage_of_command(path: str, parameters: Sequence[Parameter]) -> str:
    """Write how a command is typed."""
    return " ".join([path, "[OPTIONS]", *(_place(each) for each in parameters if not each.names)])


def help_of_group(
    path: str,
    about: str,
    parameters: Sequence[Parameter],
    members: Iterable[tuple[str, str]],
    width: int | None = None,
    *,
    before: str = "",
) -> str:
    """Write what a group is about and what is in it; `before` is how it is typed without any member."""
    tables = {"Arguments": _arguments(parameters), "Options": _options(parameters), "Commands": list(members)}
    usages = [*([before] if before else []), f"{path} [OPTIONS] COMMAND [ARGS]..."]
    return _page(usages, about, tables, width)


def _page(usages: Iterable[str], about: str, tables: dict[str, list[tuple[str, str]]], width: int | None) -> str:
    width = width or min(WIDTH, shutil.get_terminal_size().columns)
    lines = [line for usage in usages for line in _wrapped(usage, width - 7)]
    parts = ["Usage: " + "\n       ".join(lines)]
    parts += ["\n".join(f"  {line}" for line in _wrapped(part, width - 2)) for part in about.split("\n\n")]
    parts += ["\n".join([f"{title}:", *_columns(rows, width)]) for title, rows in tables.items() if rows]
    return "\n\n".join(parts)


def _columns(rows: Sequence[tuple[str, str]], width: int) -> Iterable[str]:
    column = min(max(len(left) for left, _ in rows) + 4, COLUMN)
    for left, right in rows:
        lines = _wrapped(right, max(width - column, 20)) or [""]
        if len(left) + 4 > column:
            yield f"  {left}"
        else:
            yield f"  {left}".ljust(column) + lines.pop(0)
        yield from (" " * column + line for line in lines)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


def _arguments(parameters: Iterable[Parameter]) -> list[tuple[str, str]]:
    return [(each.metavar, each.help) for each in parameters if not each.names]


def _options(parameters: Iterable[Parameter]) -> list[tuple[str, str]]:
    return [*((_spelled(each), _told(each)) for each in parameters if each.names), _HELP]


def _spelled(option: Parameter) -> str:
    names = ", ".join(sorted(option.names, key=len))
    off = f" / {', '.join(option.off_names)}" if option.off_names else ""
    return f"{names}{off} {option.metavar}".rstrip()


def _told(option: Parameter) -> str:
    shown = not option.flag and option.default not in (None, "", 0) and not option.many
    notes = [f"default: {option.default}" if shown else "", _bounds(option), "required" if option.required else ""]
    said = "; ".join(note for note in notes if note)
    return f"{option.help}  [{said}]" if said else option.help


def _bounds(option: Parameter) -> str:
    if option.least is not None and option.most is not None:
        return f"{option.least} to {option.most}"
    if option.least is not None:
        return f"at least {option.least}"
    return "" if option.most is None else f"at most {option.most}"


def _place(argument: Parameter) -> str:
    return argument.metavar if argument.required else f"[{argument.metavar}]"
