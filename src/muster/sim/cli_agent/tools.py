"""The tools of the scripted CLI agent that are real: Read, Write and Edit, confined to the folder it works in."""

from typing import Any, NamedTuple


class ToolOutcome(NamedTuple):
    """What a tool gave."""

    text: str
    failed: bool = False


def use(tool: dict[str, Any], given: dict[str, Any]) -> ToolOutcome:
    """Use a tool; one that is not real gives what the script says."""
    act = _REAL.get(tool["name"])
    if act is None or "result" in tool:
        return ToolOutcome(str(tool.get("result", "")), bool(tool.get("failed", False)))
    try:
        return ToolOutcome(act(given))
    except (OSError, ValueError, KeyError) as error:
        return ToolOutcome(f"{type(error).__name__}: {error}", failed=True)


def _read(given: dict[str, Any]) -> str:
    with open(_inside(given["file_path"]), encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def _write(given: dict[str, Any]) -> str:
    with open(_inside(given["file_path"]), "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(given["content"])
    return f"wrote {given['file_path']}"


def _edit(given: dict[str, Any]) -> str:
    text = _read(given)
    old = given["old_string"]
    if text.count(old) != 1:
        raise ValueError(f"{old!r} stands {text.count(old)} times in {given['file_path']}, not once")
    return _write({**given, "content": text.replace(old, given["new_string"])})


def _inside(path: str) -> str:
    """Return the real path of a file in this folder; a link that leads out of it is refused too."""
    from pathlib import Path  # loaded when a tool is used: it would be a tenth of the start

    here = Path.cwd().resolve()
    found = (here / path).resolve()
    if not found.is_relative_to(here):
        raise ValueError(f"{path} is outside of the working directory")
    return str(found)


_REAL = {"Read": _read, "Write": _write, "Edit": _edit}
