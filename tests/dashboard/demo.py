"""A project with something of everything that the page shows: agents, a judged suite, tasks that edit files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.api.server import Project, Server
from tests.git.repository import Repository

SETTINGS = """
[serve]
models = ["sim/echo", "sim/slow", "sim/flaky", "sim/fail"]
jobs_per_client = 100
starts_per_minute = 10000
[library]
paths = ["library"]
[pool]
slots = 2
agent = "coder"
[agents.me]
kind = "human"
[agents.coder]
kind = "cli"
command = ["sh", "coder.sh"]
budget_usd = 0.0
[agents.stuck]
kind = "cli"
command = ["sleep", "600"]
budget_usd = 0.0
"""
CODER = """
prompt=$(cat)
case "$prompt" in *FAIL*) echo "make: *** [test] Error 2" >&2; exit 3;; esac
printf '# Lamp shop\\n\\nWe sell lamps and repair them.\\n' > README.md
printf '\\n## Opening hours\\n\\nSaturday from 10 to 4.\\n' >> README.md
printf '%s\\n' "$prompt" > notes.txt
printf 'I added the opening hours to **README.md** and kept my notes in `notes.txt`.\\n'
printf '\\n- one heading\\n- one sentence\\n'
"""
PRICE = "price = { input = 3.0, output = 15.0 }\n"
TOPICS = (
    "opening hours",
    "a refund",
    "a broken lamp",
    "a late parcel",
    "an invoice",
    "a colour",
    "a gift card",
    "a complaint",
)


def scripted(folder: Path, name: str, rules: list[dict[str, Any]], otherwise: str) -> str:
    """Write the script of an agent, and return its section."""
    (folder / f"{name}.yaml").write_text(json.dumps({"rules": rules, "otherwise": otherwise}), encoding="utf-8")
    return f'[agents.{name}]\nkind = "scripted"\nscript = "{name}.yaml"\n{PRICE}'


def verdict(value: str, confidence: float, reason: str) -> str:
    return json.dumps({"verdict": value, "confidence": confidence, "criteria": ["a table is booked"], "reason": reason})


def judged(clear: float, kind: float, evidence: str, rationale: str) -> str:
    items = [
        {"id": "clear", "score": clear, "evidence": evidence, "rationale": rationale},
        {"id": "kind", "score": kind, "evidence": "", "rationale": "The tone fits."},
    ]
    return json.dumps({"items": items})


SURE = "A colleague looks at it today"
VAGUE = "Probably it will be fine"


CAREFUL = f"""Thank you for asking. {SURE}, and you hear from us **before four o'clock**.

1. We look it up.
2. We write to you."""
HASTY = f"Thank you. {SURE}, and you hear from us before five o'clock."
COMMITS_TO_NOTHING = judged(0.2, 0.5, VAGUE, "It commits to nothing, so the customer has to ask again.")
CLERK = [
    {"turn": 3, "answer": "Your table for two is booked for eight o'clock. The number is 4711."},
    {"turn": 2, "answer": "At what time? For how many we know: two."},
]
REFEREE = [
    {"text": VAGUE, "answer": COMMITS_TO_NOTHING},
    {"text": "number is 4711", "answer": verdict("yes", 0.94, "The clerk names the number of the reservation.")},
    {"text": "For how many", "answer": verdict("no", 0.2, "Nothing is booked yet; the clerk asks back.")},
]
HOSTILE = """<script>document.title = "broken"</script>
<img src=x onerror="document.title = 'broken'">

[press here](javascript:alert(1)) and **this** is bold"""


def agents(folder: Path) -> str:
    """Declare all scripted agents."""
    vague = [
        {"text": f"about {one} \\(\\d*7\\)", "answer": f"{VAGUE}. I cannot say more about {one}."} for one in TOPICS
    ]
    parts = [
        scripted(folder, "careful", vague, CAREFUL),
        scripted(folder, "hasty", [{"text": "refund|complaint|parcel", "answer": f"{VAGUE}."}], HASTY),
        scripted(folder, "referee", REFEREE, judged(1, 0.9, SURE, "It says who does what until when.")),
        scripted(folder, "clerk", CLERK, "Gladly! For how many people, and when?"),
        scripted(folder, "guest", [{"text": "what time", "answer": "At eight, please."}], "For two, please."),
        scripted(folder, "hostile", [], HOSTILE),
    ]
    return "".join(parts)


def suite(cases: int) -> str:
    """Write a suite."""
    made = [a_case(number, TOPICS[number % len(TOPICS)]) for number in range(cases)]
    head = {"schema_version": 1, "skill_or_agent": "help-desk", "defaults": {"evaluator": "judge"}}
    return yaml.safe_dump(head | {"cases": made}, sort_keys=False)


def a_case(number: int, topic: str) -> dict[str, Any]:
    clear = {"id": "clear", "description": "It says who does what until when."}
    return {
        "id": f"help-desk/{topic.split()[-1]}-{number}",
        "description": f"The customer learns **what happens next** about `{topic}`.",
        "tags": ["smoke", "judge"] if number % 5 == 0 else ["happy-path"],
        "input": {"messages": [{"role": "user", "content": f"I ask about {topic} ({number})"}]},
        "expected": {
            "output": [{"kind": "regex", "value": "(?i)thank you|probably"}],
            "rubric": [clear, {"id": "kind", "description": "It is kind."}],
        },
    }


@dataclass
class Demo:
    """The project, and what is started in it."""

    project: Project

    @classmethod
    def at(cls, folder: Path, *, cases: int = 16, more: str = "") -> "Demo":
        repository = Repository(folder)
        project = Project(folder)
        repository.write("README.md", "# Lamp shop\n\nWe sell lamps.\n")
        repository.write("coder.sh", CODER)
        repository.write(".gitignore", ".muster/\n")
        (folder / "library" / "help-desk.yaml").write_text(suite(cases), encoding="utf-8")
        project.declare(agents(folder) + more, SETTINGS)
        repository.commit("the shop")
        return cls(project)


def start_suite(server: Server, *subjects: str, name: str, budget_usd: float = 0.5) -> str:
    chosen = {"suites": ["help-desk"], "agents": list(subjects), "judge": "referee", "budget_usd": budget_usd}
    return started(server, "/api/suites/start", {**chosen, "name": name, "run_tags": ["nightly"]})


def start_battle(server: Server, **more: Any) -> str:
    sides = {"agentId": "clerk", "counterpart": "guest", "judge": "referee"}
    return started(
        server, "/api/battles/start", {**sides, "goal": "A table for two is booked", "budgetUsd": 0.2, **more}
    )


def spent(one: dict[str, Any]) -> float:
    """Return what counts against a budget."""
    return float(sum(one[f"{lane}_usd"] for lane in ("spent", "imputed", "uncertain")))


def dollars(one: dict[str, Any]) -> str:
    """Write exactly what was spent, as the page does."""
    micro = round(1e6 * spent(one))
    return f"${micro / 1e6:.{2 if micro % 10_000 == 0 else 4 if micro % 100 == 0 else 6}f}"


def submit_task(server: Server, prompt: str, **more: Any) -> str:
    return started(server, "/api/tasks", {"prompt": prompt, "review": True, **more})


def started(server: Server, path: str, body: dict[str, Any]) -> str:
    answer = server.post(path, body)
    assert answer.status == 202, answer.body
    found: str = answer.json["id"]
    return found
