"""Names say what a thing is in words of the trade: no metaphors that have to be learned first."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from .test_rooms import modules, nodes_of

# Each with the words to use instead. The words that a name is made of are compared, so every form has to be listed.
# There are no exceptions: what is stored under such a word ("desk", "mood") is a text, not a name.
METAPHORS = {
    "actor": "player, driver",
    "alarm alarms": "timer",
    "attend attends attended attendance": "register, workers",
    "board boards boarded boarding boarder": "acquire",
    "breath breathe breathing": "yield",
    "bury buries buried": "expire, end",
    "cargo freight": "body, payload",
    "choke choked": "pause",
    "clerk butler": "client",
    "crew": "workers, tasks, items",
    "cue cues": "step, scripted fault",
    "culprit": "the field, the cause",
    "curtain": "overlay, display",
    "desk office": "router, registry, endpoint",
    "errand errands": "task, options",
    "fate fates": "outcome, failure",
    "furnish": "prepare, write",
    "house houses household": "home, registry, processes",
    "knock knocks": "wake",
    "manner manners": "options, format",
    "mood moods temper": "behavior",
    "obedient": "memory, scripted",
    "parcel parcels": "upload",
    "parting": "final, summary",
    "portrait": "view, profile",
    "pulse": "delays, heartbeat",
    "pump": "wake, admit",
    "purse": "budget",
    "ride": "send, perform",
    "seat seats seated": "admission, place",
    "shelf shelves": "library, index, folder",
    "sight sights": "display, progress",
    "speaker": "responder",
    "stage stages": "setup, phase",
    "starve": "time out",
    "undead victims": "left running",
    "veil": "mask",
    "voice": "writer",
}
WORDS = {word: instead for words, instead in METAPHORS.items() for word in words.split()}


@cache
def words_of(name: str) -> list[str]:
    """Return the words of a name in snake case, camel case or capitals."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def names_in(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module gives: to classes, functions, parameters, variables and attributes."""
    for node in nodes_of(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_no_name_is_a_metaphor() -> None:
    found = {
        f"{module}: {name} (use: {WORDS[word]})"
        for module, tree in modules().items()
        for name in [*module.split("."), *names_in(tree)]
        for word in words_of(name)
        if word in WORDS
    }
    assert sorted(found) == []


def test_a_metaphor_in_a_name_would_be_noticed() -> None:
    tree = ast.parse("class DemoStage:\n def _see(self, cargo):\n  self._purse, batch_sight = 1, 2")
    assert [word for name in names_in(tree) for word in words_of(name) if word in WORDS] == [
        "stage",
        "cargo",
        "purse",
        "sight",
    ]
