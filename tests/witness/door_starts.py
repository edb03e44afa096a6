"""Starts of every kind of work at every door: with as little as it takes, and with every field."""

from typing import Any

Start = tuple[str, dict[str, Any]]
ECHO, SLOW = "sim/echo", "sim/slow"
WORKLOADS = ("fan-out", "scale")  # whose children are recorded too

_SCHEMA = {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}
_RUN = {"run_tags": ["nightly", "b"], "budget_usd": 0.5, "timeout_secs": 30.5, "concurrency": 3}
_BATTLE = {"agentId": ECHO, "counterpart": ECHO}
_CONVERSATION = {
    "systemPrompt": "Be brief.",
    "persona": "A guest.",
    "goal": "A table is booked",
    "userMessage": "Hello",
    "messageLimit": 2,
    "maxTokens": 64,
    "temperature": 0.5,
    "seed": 7,
    "validators": [{"kind": "contains", "text": "booked"}],
    "judge": SLOW,
    "confirmJudge": ECHO,
    "plateauTurns": 2,
    "timeoutSecs": 20,
    "budgetUsd": 0.25,
}
_SCALE = {
    "agentIds": [SLOW],
    "runCount": 2,
    "concurrency": 2,
    "minGoalRate": 0.5,
    "reviser": ECHO,
    "tryRevised": True,
}
_GOALS = [{"goal": "A table", "persona": "A guest.", "userMessage": "Hi"}, {"goal": "A room"}]
_PROMPTS = [{"name": "brief", "text": "Be brief."}, {"name": "long", "text": "Explain everything."}]

REQUESTS: dict[str, Start] = {
    "ask": ("/api/ask", {"agent": ECHO, "prompt": "Hello"}),
    "ask-whole": (
        "/api/ask",
        {
            "agent": ECHO,
            "prompt": "Hello",
            "system": "Be brief.",
            "max_tokens": 64,
            "temperature": 0.5,
            "seed": 7,
            "name": "asked",
            **_RUN,
        },
    ),
    "suite": ("/api/suites/start", {"suites": ["smoke"], "agents": [ECHO]}),
    "suite-whole": (
        "/api/suites/start",
        {
            "suites": ["smoke"],
            "agents": [ECHO, SLOW],
            "judge": ECHO,
            "judge_samples": 2,
            "judge_dispatch": "live",
            "epochs": 2,
            "filter": "greeter/*",
            "evaluator": "all",
            "threshold": 0.5,
            "max_tokens": 64,
            "temperature": 0.5,
            "seed": 7,
            "name": "tested",
            **_RUN,
        },
    ),
    "chain": ("/api/chains", {"chain": "greet", "input": {"topic": "bridges"}}),
    "chain-whole": ("/api/chains", {"chain": "greet", "input": {"topic": "bridges"}, "name": "linked", **_RUN}),
    "council": ("/api/councils", {"question": "Why?", "policy": "pair"}),
    "council-whole": (
        "/api/councils",
        {
            "question": "Why?",
            "agents": [ECHO, {"agent": SLOW, "role": "critic", "persona": "Doubts.", "budget_usd": 0.1}],
            "rounds": 2,
            "min_rounds": 1,
            "effort": 0.5,
            "seed": 7,
            "synthesis": ECHO,
            "baseline": SLOW,
            "name": "argued",
            **_RUN,
        },
    ),
    "task": ("/api/tasks", {"prompt": "Write a haiku."}),
    "task-whole": (
        "/api/tasks",
        {
            "prompt": "Write a haiku.",
            "agent": ECHO,
            "system": "Be brief.",
            "schema": _SCHEMA,
            "review": True,
            "max_rejections": 2,
            "budget_usd": 0.5,
            "timeout_secs": 30.5,
            "name": "haiku",
            "tags": ["poem"],
            "priority": 4,
        },
    ),
    "battle": ("/api/battles/start", _BATTLE),
    "battle-whole": (
        "/api/battles/start",
        {**_BATTLE, **_CONVERSATION, "id": "fought-1", "name": "fought", "runTags": ["nightly"]},
    ),
    "battle-other-id": ("/api/battles/start", {**_BATTLE, "jobId": "fought-2"}),
    "battle-of-model": ("/api/battles/start", {**_BATTLE, "agentId": "sim", "provider": "sim", "model": "echo"}),
    "scale": ("/api/scale/start", _BATTLE),
    "scale-whole": ("/api/scale/start", {**_BATTLE, **_CONVERSATION, **_SCALE, "name": "scaled"}),
    "scale-of-goals": (
        "/api/scale/start",
        {**_BATTLE, "judge": SLOW, "messageLimit": 1, "goals": _GOALS, "prompts": _PROMPTS, "revision": False},
    ),
}

TOOLS: dict[str, Start] = {
    "ask": ("ask", {"agent": ECHO, "prompt": "Hello"}),
    "ask-whole": (
        "ask",
        {
            "agent": ECHO,
            "prompt": "Hello",
            "system": "Be brief.",
            "max_tokens": 64,
            "output_schema": _SCHEMA,
            "dispatch": "live",
            "budget_usd": 0.5,
            "name": "asked",
        },
    ),
    "suite": ("run_suite", {"suites": ["smoke"], "agents": [ECHO]}),
    "suite-whole": (
        "run_suite",
        {
            "suites": ["smoke"],
            "agents": [ECHO, SLOW],
            "judge": ECHO,
            "epochs": 2,
            "filter": "greeter/*",
            "budget_usd": 0.5,
            "name": "tested",
        },
    ),
    "chain": ("run_chain", {"chain": "greet", "input": {"topic": "bridges"}}),
    "council": ("start_council", {"question": "Why?", "policy": "pair"}),
    "council-whole": (
        "start_council",
        {"question": "Why?", "agents": [ECHO, SLOW], "rounds": 2, "synthesis": ECHO, "budget_usd": 0.5},
    ),
    "task": ("submit_task", {"prompt": "Write a haiku."}),
    "task-whole": (
        "submit_task",
        {
            "prompt": "Write a haiku.",
            "agent": ECHO,
            "system": "Be brief.",
            "output_schema": _SCHEMA,
            "review": True,
            "max_rejections": 2,
            "budget_usd": 0.5,
            "timeout_secs": 30.5,
            "name": "haiku",
            "tags": ["poem"],
            "priority": 4,
        },
    ),
    "fan-out": ("fan_out", {"prompts": ["One.", "Two."], "name": "many", "tags": ["poem"], "system": "Be brief."}),
    "battle": ("start_battle", {"agent": ECHO, "counterpart": ECHO}),
    "battle-whole": (
        "start_battle",
        {
            "agent": ECHO,
            "counterpart": ECHO,
            "goal": "A table is booked",
            "system_prompt": "Be brief.",
            "message_limit": 2,
            "judge": SLOW,
            "budget_usd": 0.25,
            "name": "fought",
        },
    ),
    "scale": ("start_battle", {"agent": ECHO, "counterpart": ECHO, "message_limit": 1, "runs": 2}),
}

JOBS: dict[str, Start] = {
    "battle": ("battles", _BATTLE),
    "battle-whole": ("battles", {**_BATTLE, **_CONVERSATION, "name": "fought"}),
    "7": ("battles", _BATTLE),  # an id that BullMQ has counted
    "scale": ("scale-tests", _BATTLE),
    "scale-whole": ("scale-tests", {**_BATTLE, **_CONVERSATION, **_SCALE, "name": "scaled"}),
    "scale-of-goals": (
        "scale-tests",
        {**_BATTLE, "judge": SLOW, "messageLimit": 1, "goals": _GOALS, "prompts": _PROMPTS, "revision": False},
    ),
}

FILES = {
    "goals.yaml": "goals:\n  - {goal: A table, persona: A guest.}\n  - {goal: A room}\n",
    "brief.txt": "Be brief.\n",
    "long.txt": "Explain everything.\n",
    "validators.json": '[{"kind": "contains", "text": "booked"}]',
    "schema.json": '{"type": "object"}',
    "tasks.yaml": "agent: sim/echo\nprompts: [Write a haiku., Write a song.]\n",
    "source.py": "x = 1\n",
    "verify.yaml": "agents:\n  - {name: reader, model: sim/echo, wave: 1, include: ['*.py'], prompt: Read it.}\n",
    "more.md": "More.\n",
}
_TERMS = ("--budget", "0.5", "--timeout", "30.5")
_SAMPLING = ("--max-tokens", "64", "--temperature", "0.5", "--seed", "7")
_TALK = (
    *("--counterpart", ECHO, "--goal", "A table is booked", "--system", "Be brief.", "--persona", "A guest."),
    *("--user-message", "Hello", "--message-limit", "2", "--judge", SLOW, "--confirm-judge", ECHO),
    *("--validator", "regex=ok", "--validators", "validators.json", "--plateau-turns", "2", *_SAMPLING),
    *(*_TERMS, "--name", "fought"),
)
_PLACE = ("--agent", ECHO, "--system", "Be brief.", "--schema", "schema.json", "--priority", "4", "--tag", "poem")
COMMANDS: dict[str, tuple[str, ...]] = {
    "ask": ("ask", ECHO, "Hello"),
    "ask-whole": ("ask", ECHO, "Hello", "--system", "Be brief.", *_SAMPLING, *_TERMS, "--name", "asked"),
    "suite": ("run", "library/smoke.yaml", "--agent", ECHO),
    "suite-whole": (
        *("run", "library/smoke.yaml", "--agent", ECHO, "--agent", SLOW, "--judge", ECHO, "--judge-samples", "2"),
        *("--epochs", "2", "--filter", "greeter/*", "--evaluator", "all", "--threshold", "0.5", *_SAMPLING),
        *(*_TERMS, "--concurrency", "3", "--name", "tested"),
    ),
    "chain": ("chain", "run", "library/greet/chain.yaml", "--input", "topic=bridges"),
    "chain-whole": (
        *("chain", "run", "library/greet/chain.yaml", "--input", "topic=bridges", *_TERMS),
        *("--concurrency", "3", "--name", "linked", "--tag", "nightly"),
    ),
    "council": ("council", "Why?", "--agent", ECHO, "--agent", SLOW, "--rounds", "1"),
    "council-whole": (
        *("council", "Why?", "--policy", "library/pair/council.yaml", "--file", "more.md", "--rounds", "2"),
        *("--min-rounds", "1", "--effort", "0.5", "--seed", "7", "--synthesis", ECHO, "--baseline", SLOW),
        *(*_TERMS, "--concurrency", "3", "--name", "argued"),
    ),
    "battle": ("battle", "--agent", ECHO, "--counterpart", ECHO),
    "battle-whole": ("battle", "--agent", ECHO, *_TALK),
    "scale": ("scale", "--agent", ECHO, "--counterpart", ECHO, "--message-limit", "1", "--runs", "2"),
    "scale-whole": (
        *("scale", "--agent", ECHO, "--agent", SLOW, "--goals", "goals.yaml", "--prompt", "brief.txt"),
        *("--prompt", "long.txt", "--runs", "4", "--concurrency", "2", "--min-goal-rate", "0.5", "--reviser", ECHO),
        *("--try-revised", "--counterpart", ECHO, "--judge", SLOW, "--message-limit", "1", "--name", "scaled"),
    ),
    "verify": ("verify", "source.py", "--name", "looked", "--budget", "0.5"),
    "verify-whole": (
        *("verify", "source.py", "--agent", "reader", "--wave", "1", "--keep-going", "--model", SLOW, "--agents"),
        *("verify.yaml", *_TERMS, "--concurrency", "3"),
    ),
    "task": ("task", "submit", "Write a haiku."),
    "task-whole": (
        *("task", "submit", "Write a haiku.", *_PLACE),
        *("--review", "--max-rejections", "2", "--name", "haiku", *_TERMS, "--isolation", "none", "--cwd", "."),
    ),
    "fan-out": ("fan-out", "tasks.yaml", "--tag", "many", "--yes"),
    "generate": ("generate", "--agent", ECHO, "--extend", "library/smoke.yaml", "--count", "1", "--dry-run"),
}
