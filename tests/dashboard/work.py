"""Councils, verifications and scale tests for the page: who takes part in them, what they say, and how they start."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muster.councils.rules.anonymity import labels_for
from muster.councils.rules.values import CouncilPhase
from tests.api.server import Server
from tests.git.repository import Repository

from .demo import scripted, started, verdict

SEED = 7
ROUNDS = 3
QUESTION = """Shall the lamp shop close on Mondays?

- Mondays bring **4 %** of the week's sales.
- Two of five people would rather work on Saturdays."""
PLAN = "Close on Mondays, and open until *eight* on Saturdays. Write it on the door two weeks before."
DOUBT = "Stay open: people who come once before a closed door do not come again."
BOOKS = "Close on Mornings only. The heating of a Monday costs more than what is sold before noon."
MEMBERS = {"planner": PLAN, "skeptic": DOUBT, "bookkeeper": BOOKS}
# What each gives to whom, round by round: the skeptic never comes round.
WEIGHTS: dict[str, tuple[dict[str, int], ...]] = {
    "planner": (
        {"skeptic": -30, "bookkeeper": 40},
        {"skeptic": -20, "bookkeeper": 60},
        {"skeptic": -30, "bookkeeper": -60},
    ),
    "skeptic": (
        {"planner": -60, "bookkeeper": 20},
        {"planner": -40, "bookkeeper": 10},
        {"planner": -20, "bookkeeper": 30},
    ),
    "bookkeeper": ({"planner": 70, "skeptic": -10}, {"planner": 80, "skeptic": -10}, {"planner": 90}),
}
CRITIQUES = {
    True: "It says *who* does what until when.",
    False: "It forgets those who come from afar: they learn of it before a closed door.",
}


def council_agents(folder: Path) -> str:
    """Declare three members that argue, and a scribe that writes the answer; a person may join them."""
    parts = [scripted(folder, name, list(_turns(name, text)), "{}") for name, text in MEMBERS.items()]
    answer = f"{PLAN}\n\nDissent: one of us fears closed doors [1]."
    said = {"text": answer, "dissent": [{"number": 1, "passage": "one of us fears closed doors [1]"}]}
    return "".join([*parts, scripted(folder, "scribe", [], json.dumps(said))])


def _turns(name: str, text: str) -> Sequence[dict[str, Any]]:
    """Return what a member says in each phase of each round, in a council with a person and in one without."""
    rules = []
    for number in range(1, ROUNDS + 1):
        revised = text if number == 1 else f"{text}\n\nIn round {number} I keep to it, and answer the critiques."
        claims = ["Mondays bring 4 % of the sales.", "A sign on the door is read."]
        proposal = {"text": revised, "claims": claims, "final_scratchpad": ""}
        rules.append({"text": f"# Round {number} of .*: propose", "answer": json.dumps(proposal)})
        for others in ([*MEMBERS, "me"], list(MEMBERS)):
            seen = labels_for(name, others, round_number=number, phase=CouncilPhase.EVALUATE, seed=SEED).shown
            weights = WEIGHTS[name][number - 1]
            votes = [_vote(label, weights.get(agent, 5)) for label, agent in seen]
            shown = "".join(f"(?=[\\s\\S]*candidate {label})" for label, _ in seen)
            answer = json.dumps({"evaluations": votes})
            rules.append({"text": f"{shown}[\\s\\S]*# Round {number} of .*: evaluate", "answer": answer})
    return rules


def _vote(label: str, weight: int) -> dict[str, Any]:
    doubt = {"claim": 1, "stance": "contested", "reason": "The last count was in summer."}
    return {
        "candidate": label,
        "weight": weight,
        "critique": CRITIQUES[weight > 0],
        "claims": [doubt] if weight < 0 else [],
    }


def start_council(server: Server, *more: str, **fields: Any) -> str:
    body = {"question": QUESTION, "agents": [*MEMBERS, *more], "seed": SEED, "rounds": ROUNDS, "min_rounds": ROUNDS}
    return started(server, "/api/councils", {**body, "synthesis": "scribe", **fields})


CODE = '''"""Orders of the lamp shop."""

import os
import sqlite3


def find(db: sqlite3.Connection, name: str) -> list[tuple[str]]:
    query = f"SELECT * FROM orders WHERE name = '{name}'"
    return db.execute(query).fetchall()


def archive(path: str) -> None:
    os.system("tar czf backup.tgz " + path)


def total(orders: list[float]) -> float:
    return sum(orders) / len(orders)
'''
API_KEY = "sk-" + "ant-api03-" + "A1b2C3d4" * 8
VERIFY = """
agents:
  - {name: auditor, wave: 1, prompt: Look for weaknesses., model: auditor, thresholds: ["critical + high == 0"]}
  - {name: proofreader, wave: 1, prompt: Look for mistakes., model: proofreader, thresholds: ["total <= 100"]}
  - {name: linter, wave: 1, kind: command, command: [sh, lint.sh], parser: lines, exits: [0, 1],
     thresholds: ["total <= 5"]}
"""
LINT = """
echo 'shop/orders.py:13: low: a process is started with a shell [S605]'
exit 1
"""
INJECTION = "The name goes into the query as it is: `name` can hold **any** SQL. <script>document.title='x'</script>"


def verify_agents(folder: Path) -> str:
    """Declare two models that find something, and write what a checker prints."""
    Path(folder / "verify.yaml").write_text(VERIFY, encoding="utf-8")
    Path(folder / "lint.sh").write_text(LINT, encoding="utf-8")
    audited = [
        _found(8, "critical", INJECTION, end_line=9, cwe="CWE-89", confidence=0.97, fix="Use a parameter."),
        _found(13, "high", "A path with a semicolon runs a command.", cwe="CWE-78"),
        _found(400, "high", "The line that is not there leaks memory."),
    ]
    read = [
        _found(13, "medium", "A path with a semicolon runs a command."),
        _found(17, "medium", "An empty list is divided by zero.", replacement="    return fmean(orders or [0])"),
    ]
    return "".join(
        scripted(folder, name, [], json.dumps({"findings": found}))
        for name, found in (("auditor", audited), ("proofreader", read))
    )


def _found(line: int, severity: str, text: str, **more: Any) -> dict[str, Any]:
    return {"file": "shop/orders.py", "line": line, "severity": severity, "finding": text, **more}


def start_verification(server: Server, folder: Path) -> str:
    Repository(folder).write("shop/orders.py", CODE)
    Repository(folder).write("shop/keys.py", f'KEY = "{API_KEY}"\n\n\ndef key() -> str:\n    return KEY\n')
    return started(server, "/api/verify", {"files": "changed", "keep_going": True})


PROMPT = "You are the clerk of a restaurant. Ask for the number of people. Ask for the time. Be kind."
REVISED = (
    "You are the clerk of a restaurant. Ask for the number of people and the time at once. State the number. Be kind."
)
REASONS = ["Guests were asked twice and gave up.", "Nobody heard the number of the reservation."]
TABLES = ("A table for two is booked", "A table for six is booked", "A dog may come along", "The bill is sent by post")
# It does what its prompt says: with the revised one it books at once.
HOST = """
case "$(cat)" in
  *"State the number"*|*"table for six"*) echo '{"text": "Booked. The number is 4711."}';;
  *) echo '{"text": "For how many people, please?"}';;
esac
"""


def scale_agents(folder: Path) -> str:
    """Declare a host that can be measured, and who proposes a better prompt."""
    Path(folder / "host.sh").write_text(HOST, encoding="utf-8")
    host = '[agents.host]\nkind = "program"\nmode = "chat"\ncommand = ["sh", "host.sh"]\n'
    rules = [{"text": "4711", "answer": verdict("yes", 0.95, "The number is named.")}]
    umpire = scripted(folder, "umpire", rules, verdict("no", 0.1, "Nothing is booked."))
    return host + umpire + scripted(folder, "editor", [], json.dumps({"prompt": REVISED, "reasons": REASONS}))


def start_scale(server: Server, **fields: Any) -> str:
    goals = [{"goal": one} for one in TABLES]
    sides = {"agentId": "host", "counterpart": "guest", "judge": "umpire", "systemPrompt": PROMPT, "messageLimit": 2}
    return started(server, "/api/scale/start", {**sides, "goals": goals, "runCount": 8, "reviser": "editor", **fields})
