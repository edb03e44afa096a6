"""Cases as text of a suite file: a new one, or lines for the end of one whose own lines stay as they are. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Any

import yaml

from muster.domain.errors import BadFile

Cases = Sequence[Mapping[str, Any]]

_CASES = re.compile(r"^cases[ \t]*:[ \t]*(?:#.*)?$", re.MULTILINE)
_ITEM = re.compile(r"^( *)-(?=[ \t]|$)", re.MULTILINE)
_NEXT = re.compile(r"^(?:[^\s#-]|---|\.\.\.)", re.MULTILINE)  # the next key at the top, or the end of the document
_LEAD = re.compile(r"(?:^#.*\n|^[ \t]*\n)*\Z", re.MULTILINE)  # what stands right above it belongs to it


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and lists below their keys."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # A block that begins or ends with white space needs signs that are easily misread; such a text goes into quotes.
    block = not text[:1].isspace() and not text.endswith("\n\n")
    style = None if "\n" not in text else "|" if block else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(value: Any) -> str:
    """Write a value in YAML, as a person would."""
    return str(yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110))


def new_suite(skill: str, cases: Cases) -> str:
    """Write a suite."""
    return yaml_text({"schema_version": 1, "skill_or_agent": skill, "cases": list(cases)})


def extended(file: str, text: str, cases: Cases) -> str:
    """Give the text of a suite with cases at the end of its list; raises BadFile where there is no place for them."""
    windows = "\r\n" in text
    plain = text.replace("\r\n", "\n")
    if plain and not plain.endswith("\n"):
        plain += "\n"
    found = _with_tables(plain, cases) if file.endswith(".toml") else _with_items(file, plain, cases)
    return found.replace("\n", "\r\n") if windows else found


def _with_items(file: str, text: str, cases: Cases) -> str:
    head = _CASES.search(text)
    item = _ITEM.search(text, head.end()) if head else None
    if head is None or item is None:
        raise BadFile(file, "its cases do not stand in a list with one '-' for each, so none can be added at its end")
    after = _NEXT.search(text, item.end())
    end = len(text)
    if after is not None:
        lead = _LEAD.search(text[: after.start()])
        end = after.start() if lead is None else lead.start()
    added = indent(yaml_text(list(cases)), item[1])
    return text[:end] + added + text[end:]


def _with_tables(text: str, cases: Cases) -> str:
    tables = ("\n[[cases]]\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in case.items()) for case in cases)
    return text + "".join(tables)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_toml(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # texts and numbers are spelled like in JSON
