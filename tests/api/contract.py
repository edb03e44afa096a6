"""What /openapi.json promises, checked on every answer that a test gets: its status, and the shape of its JSON."""

import json
import re
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from muster.api.app import description
from muster.api.schema import METHODS

NOT_OF_ROUTES = {405, 204}  # of methods that a path does not take, and of preflights


@cache
def routes() -> list[tuple[str, str, re.Pattern[str], dict[str, Any]]]:
    """Return method, path, the pattern of the path, and the operation; fixed paths before those with names."""
    schema: dict[str, Any] = description()
    found = [
        (method, path, re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))), operations[method])
        for path, operations in schema["paths"].items()
        for method in METHODS
        if method in operations
    ]
    return sorted(found, key=lambda one: one[1].count("{"))


@cache
def _validator(name: str, status: int) -> Draft202012Validator | None:
    method, _, path = name.partition(" ")
    schema: dict[str, Any] = description()
    response = schema["paths"][path][method]["responses"][str(status)]
    shape = response.get("content", {}).get("application/json", {}).get("schema")
    return None if shape is None else Draft202012Validator({**shape, "components": schema["components"]})


def check(method: str, target: str, status: int, kind: str, body: bytes) -> None:
    """Raise AssertionError for an answer that the schema does not describe."""
    path = target.partition("?")[0]
    for name, template, pattern, operation in routes():
        if name == method.lower() and pattern.fullmatch(path):
            if status not in NOT_OF_ROUTES:
                assert str(status) in operation["responses"], (
                    f"{method} {template} does not document {status}: {body!r}"
                )
                described = operation["responses"][str(status)].get("content", {"": {}})
                kinds = {one.partition(";")[0] for one in described}
                assert kind.partition(";")[0] in kinds, f"{method} {template} does not document {kind}"
                validator = _validator(f"{name} {template}", status)
                if validator is not None and kind.startswith("application/json"):
                    wrong = [f"{list(one.path)}: {one.message}" for one in validator.iter_errors(json.loads(body))]
                    assert not wrong, f"{method} {template} {status}: {wrong[:3]}"
            return
