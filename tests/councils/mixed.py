"""A council of every kind of agent: two models, programs in Python and shell, the scripted CLI agent and a person."""

import json
import sys
from pathlib import Path

from muster.councils.rules.anonymity import labels_for
from muster.councils.rules.values import CouncilPhase
from tests.chaos import work
from tests.councils.home import SEED, declared, program

MODELS = [work.ANTHROPIC, work.OPENAI]
PERSON = "me"
MEMBERS = [*MODELS, "py", "sh", "tool", PERSON]
SHELL = """
input=$(cat)
case "$input" in
  *'"phase": "propose"'*) echo '{"thought_process": "", "content": "42 from a shell"}' ;;
  *)
    ids=$(echo "$input" | grep -o '"id": "[^"]*"' | cut -d '"' -f 4)
    printf '{"evaluations": ['
    comma=''
    for id in $ids; do
      printf '%s{"target_id": "%s", "score": 0.8, "justification": "a shell likes it"}' "$comma" "$id"
      comma=','
    done
    echo ']}' ;;
esac
"""
CLI = """
[agents.tool]
kind = "cli"
command = {command}
output = "jsonl"
answer = "$.result"
cost_usd = "$.total_cost_usd"
session = "$.session_id"
error = "$.is_error"
ends = "$.num_turns"
budget_usd = 0.01

[agents.me]
kind = "human"
"""


def write_mixed_council(folder: Path) -> str:
    """Write the scripts of the agents that are processes, and return what muster.toml says about all but the models."""
    (folder / "agent.sh").write_text(SHELL, encoding="utf-8")
    (folder / "cli.json").write_text(json.dumps(_rules()), encoding="utf-8")
    script = ["--script", str(folder / "cli.json"), "--audit", str(folder / "cli.log")]
    command = [sys.executable, "-m", "muster.sim.cli_agent", *script]
    programs = {"py": program(), "sh": ["sh", str(folder / "agent.sh")]}
    return declared(programs, CLI.format(command=json.dumps(command)))


def _rules() -> list[dict[str, object]]:
    labels = labels_for("tool", MEMBERS, round_number=1, phase=CouncilPhase.EVALUATE, seed=SEED).labels
    weighed = [{"candidate": label, "weight": 50, "critique": "", "claims": []} for label in labels]
    return [
        {"match": ": propose", "steps": [{"say": json.dumps({"text": "42 from a CLI"})}]},
        {"match": ": evaluate", "steps": [{"say": json.dumps({"evaluations": weighed})}]},
    ]


def votes_of_the_person() -> str:
    """Return what the person writes in the first round: against the favourite of all others."""
    shown = labels_for(PERSON, MEMBERS, round_number=1, phase=CouncilPhase.EVALUATE, seed=SEED).shown
    return "\n".join(f"{label} {-60 if name == MODELS[0] else 40} by hand" for label, name in shown)
