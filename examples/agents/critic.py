"""A program of the exec protocol: proposes an answer, and judges the answers of others by how long they are."""

import json
import sys

LONG_ENOUGH = 80  # characters


def propose(context):
    """Answer the task, and say how that came about."""
    task = context["task_description"]
    role = context.get("role_context") or "a critic"
    return {"thought_process": f"I was asked as {role}.", "content": f"Before I agree: what is {task!r} good for?"}


def evaluate(context):
    """Give every candidate a score from 0 to 1."""
    return {"evaluations": [judged(candidate) for candidate in context["candidates"]]}


def judged(candidate):
    """Judge one candidate."""
    length = len(candidate["proposal"])
    return {
        "target_id": candidate["id"],
        "score": min(1.0, length / LONG_ENOUGH),
        "justification": f"{length} characters; {LONG_ENOUGH} are enough.",
    }


def main():
    """Read one question, write one answer; whatever else there is to say goes to standard error."""
    asked = json.load(sys.stdin)
    print(f"critic: the phase is {asked['phase']}", file=sys.stderr)
    answer = {"propose": propose, "evaluate": evaluate}[asked["phase"]]
    json.dump(answer(asked["context"]), sys.stdout)


if __name__ == "__main__":
    main()
