"""The table of commands: name, what the help says of it, and the function; its module is loaded when it is called."""

from functools import partial

from muster.cli.line import CliGroup, CommandEntry
from muster.cli.line.commands import load_place
from muster.cli.line.table import CommandTable


def _made(command: str) -> object:
    """Return what makes the arguments of a command from what its kind of work declares."""
    return load_place("work.table:arguments_by_name")(command)


RUNS = {
    "list": CommandEntry("List the newest runs.", "runs.list:list_runs"),
    "show": CommandEntry("Show one run: cost, calls, errors, and how to continue.", "runs.show:show"),
    "watch": CommandEntry(
        "Follow a run until it ends or waits; exit with the exit code of the run.", "runs.watch:watch"
    ),
    "delete": CommandEntry("Delete runs and all their data.", "runs.show:delete"),
    "start": CommandEntry(
        "Start a run of one of your own workloads and wait for its end.",
        "runs.start:start",
        arguments="runs.options:StartArguments",
    ),
    "cancel": CommandEntry("Cancel a run and its batches; its replies stay and can be reused.", "runs.cancel:cancel"),
    "resume": CommandEntry(
        "Continue a run; stored replies cost nothing. A failed, canceled or timed-out run continues as one new run.",
        "runs.resume:resume",
    ),
    "fork": CommandEntry("Start a new run that repeats one call and all later ones.", "runs.resume:fork"),
    "replay": CommandEntry("Repeat a run from stored replies; no agent is called.", "runs.resume:replay"),
    "rejudge": CommandEntry(
        "Judge the answers of a suite run again; the answers are not paid for again.",
        "suites.run:rejudge",
        arguments="suites.options:RejudgeArguments",
    ),
    "export": CommandEntry("Export a run and all its data to a file.", "runs.transfer:export"),
    "import": CommandEntry("Import a run from a file; its id stays the same.", "runs.transfer:import_"),
}

BATCH = {
    "list": CommandEntry("List the newest batches.", "batches.list:list_batches"),
    "show": CommandEntry("Show one batch: calls, cost, times, runs.", "batches.list:show"),
    "stats": CommandEntry("Show how long batches took, how they ended, and what they saved.", "batches.list:stats"),
    "watch": CommandEntry(
        "Follow a batch until it ends; fetch its results unless another process does.", "batches.fetch:watch"
    ),
    "fetch": CommandEntry("Wait for a batch and store its results.", "batches.fetch:fetch"),
    "cancel": CommandEntry("Cancel a batch at the provider; keep the results it has.", "batches.fetch:cancel"),
    "reconcile": CommandEntry(
        "Check whether batches whose submission was interrupted exist at the provider.", "batches.reconcile:reconcile"
    ),
}

AGENTS = {
    "models": CommandEntry("List the models that a provider offers, with their prices.", "models:list_models"),
}

BASELINE = {
    "set": CommandEntry(
        "Name a run as a baseline; a run in a file is imported first.",
        "suites.baseline:set_baseline",
    ),
    "list": CommandEntry("List all baselines.", "suites.baseline:list_baselines"),
    "remove": CommandEntry("Remove a baseline; the run stays.", "suites.baseline:remove"),
}

HOOK = {
    "install": CommandEntry(
        "Install a git pre-commit hook that verifies the staged files.",
        "verify.setup:install",
    ),
}

VERIFY = {
    "plan": CommandEntry(
        "Show files, agents, calls and cost of a verification; spends nothing.",
        "verify.plan:plan",
        arguments="verify.options:VerifyPlanArguments",
    ),
    "resume": CommandEntry("Continue a verification; show the result of one that has ended.", "verify.command:resume"),
    "metrics": CommandEntry(
        "Show duration, results, findings and cost of verifications.",
        "verify.metrics:metrics",
    ),
    "allow-secret": CommandEntry(
        "Add an exception to verify.yaml: this line may contain a secret of this kind.",
        "verify.setup:allow_secret",
    ),
    "hook": CommandEntry("Install the git hook that verifies each commit.", commands=HOOK),
}

EVIDENCE = {
    "keygen": CommandEntry(
        "Create a key pair for signing. Existing files are never overwritten.",
        "suites.evidence:keygen",
    ),
    "export": CommandEntry(
        "Write a signed archive of a suite run: suite, prompts, calls, verdicts, metrics. Secrets are removed.",
        "suites.evidence:export",
    ),
    "verify": CommandEntry(
        "Check that an archive was not changed since it was signed. Needs no store and no network.",
        "suites.evidence:verify",
    ),
    "rescore": CommandEntry(
        "Check an archive, then score its replies again and compare. No agent is called.",
        "suites.evidence:rescore",
    ),
}

TASK_ARGUMENTS = "pool.options:TaskArguments"

TASK = {
    "run": CommandEntry(
        "Run a task and wait until it ends or waits for review; runs in this process if no process runs the pool.",
        "pool.task:run",
        arguments=TASK_ARGUMENTS,
    ),
    "submit": CommandEntry(
        "Queue a task for the process that runs the pool.", "pool.task:submit", arguments=TASK_ARGUMENTS
    ),
    "result": CommandEntry("Print the output of a task; exit 1 if it failed.", "pool.task:result"),
    "list": CommandEntry("List the newest tasks.", "pool.task:list_tasks"),
    "logs": CommandEntry("Print what happened to a task and what its agent wrote.", "pool.monitor:logs"),
    "watch": CommandEntry(
        "Show slots and tasks until no task is pending or running; Ctrl-C stops watching, not the tasks.",
        "pool.monitor:watch",
    ),
    "approve": CommandEntry("Approve a task that waits for review.", "pool.task:approve"),
    "reject": CommandEntry(
        "Reject a task that waits for review; the agent does it again and sees all feedback.",
        "pool.task:reject",
    ),
    "allow": CommandEntry("Grant the permission that a task asks for, until the task ends.", "pool.task:allow"),
    "deny": CommandEntry("Deny the permission that a task asks for; its agent continues without it.", "pool.task:deny"),
    "cancel": CommandEntry("Cancel a task that has not ended.", "pool.task:cancel"),
    "retry": CommandEntry("Queue a failed or canceled task again.", "pool.task:retry"),
    "diff": CommandEntry("Print what a task changed in its worktree, as a patch.", "pool.task:diff"),
    "merge": CommandEntry(
        "Merge the branch of a task in a separate worktree; your files change only with --apply.", "pool.task:merge"
    ),
    "change": CommandEntry("Change the prompt or the priority of a task that has not started.", "pool.task:change"),
    "claim": CommandEntry(
        "Assign the oldest pending task that fits to a slot; print its id, or nothing if there is none.",
        "pool.task:claim",
    ),
}

CONTEXT = {
    "set": CommandEntry("Set a text that is added to the prompts of every slot.", "pool.pool:set_context"),
    "get": CommandEntry("Print one of the texts that are added to the prompts of every slot.", "pool.pool:get_context"),
    "delete": CommandEntry(
        "Delete one of the texts that are added to the prompts of every slot.", "pool.pool:delete_context"
    ),
    "list": CommandEntry("List the texts that are added to the prompts of every slot.", "pool.pool:list_context"),
}

MESSAGE = {
    "send": CommandEntry(
        "Send a message to a slot; its agent gets it once, during its task or in its next prompt.", "pool.pool:send"
    ),
    "broadcast": CommandEntry(
        "Send a message to every slot except the sender and stopped slots.", "pool.pool:broadcast"
    ),
    "read": CommandEntry(
        "Show the unread messages of a slot and mark them as read; its agent does not get them.",
        "pool.pool:read",
    ),
    "peek": CommandEntry("Show the unread messages of a slot; they stay unread.", "pool.pool:peek"),
    "count": CommandEntry("Print the number of unread messages of a slot.", "pool.pool:count"),
}

POOL = {
    "start": CommandEntry("Run the tasks of the pool until it is stopped or drained.", "pool.pool:start"),
    "status": CommandEntry("Show slots, tasks, cost and the process that runs the pool.", "pool.pool:status"),
    "slots": CommandEntry("List the slots.", "pool.pool:slots"),
    "scale": CommandEntry("Change the number of slots; a busy slot is removed when its task ends.", "pool.pool:scale"),
    "drain": CommandEntry(
        "Refuse new tasks, wait for running ones, and stop all slots; pending tasks stay queued.", "pool.pool:drain"
    ),
    "gc": CommandEntry(
        "Remove worktrees of ended tasks whose work is merged; show why the others are kept.", "pool.fan_out:gc"
    ),
    "overlaps": CommandEntry(
        "List files that more than one finished, unmerged task has changed.", "pool.fan_out:overlaps"
    ),
    "metrics": CommandEntry("Show how tasks ended, what they cost and how long they took.", "pool.fan_out:metrics"),
    "context": CommandEntry(
        "Set, print, delete and list texts that are added to the prompts of every slot.", commands=CONTEXT
    ),
    "message": CommandEntry("Send messages to slots, and show unread ones.", commands=MESSAGE),
}

STORE = {
    "info": CommandEntry("Show the path and size of the store, and check it for damage.", "store:info"),
    "vacuum": CommandEntry(
        "Release unused space of the store file; refused while runs are in progress.", "store:vacuum"
    ),
    "copy": CommandEntry(
        "Copy a whole store into an empty one, and verify the copy by counts and digests.", "store:copy"
    ),
}

CHAIN = {
    "run": CommandEntry(
        "Run chains and print the output of their steps.",
        "chains.command:run",
        arguments="chains.options:ChainArguments",
    ),
    "plan": CommandEntry(
        "Show the steps, calls and cost of a chain; spends nothing.",
        "chains.command:plan",
        arguments="chains.options:ChainPlanArguments",
    ),
    "progress": CommandEntry(
        "Show the progress of a chain: its steps, their output and cost.", "chains.command:progress"
    ),
    "resume": CommandEntry(
        "Continue a chain at the step that failed or was stopped; the agent is shown the error.",
        "chains.command:resume",
    ),
    "cancel": CommandEntry("Cancel a chain; the output of its finished steps stays.", "chains.command:cancel"),
    "list": CommandEntry("List the newest chains.", "chains.command:list_chains"),
}

COUNCIL = {
    "inject": CommandEntry(
        "Send a text to all members of a council; they see it from their next phase on.", "councils.command:inject"
    ),
    "stop": CommandEntry("End a council with the best proposal so far.", "councils.command:stop"),
}

BATTLE = {
    "status": CommandEntry("Show the state of a battle.", "battles.command:battle_status"),
    "messages": CommandEntry(
        "Print the messages of a battle, finished or in progress.", "battles.command:battle_messages"
    ),
    "decisions": CommandEntry(
        "Print what validators and judges decided after each reply.", "battles.command:battle_decisions"
    ),
}

SCALE = {
    "status": CommandEntry("Show the state of a scale test.", "battles.command:scale_status"),
}

COMMANDS = {
    "demo": CommandEntry("Run a demo without a key: a crash, a resume, and a suite.", "demo.command:demo"),
    "ask": CommandEntry(
        "Ask one question and print the answer.", "runs.ask:ask", arguments="runs.options:AskArguments"
    ),
    "agents": CommandEntry("Show which models can be asked.", commands=AGENTS),
    "answer": CommandEntry("Answer a question that a run has asked a person.", "runs.answer:answer"),
    "init": CommandEntry(
        "Create a folder with a small suite, a chain, a council, or the built-in verification agents.",
        "project:init",
    ),
    "validate": CommandEntry(
        "Check suites, chains, councils and verification agents; exit 2 if one is not valid.",
        "suites.validate:validate",
    ),
    "lint": CommandEntry(
        "Report weaknesses in suites; exit 1 if there are any, 2 if a suite is not valid.",
        "suites.validate:lint",
    ),
    "generate": CommandEntry(
        "Generate test cases with a model; each is validated and compared with the existing ones.",
        "suites.generate:generate",
        arguments="suites.options:GenerateArguments",
    ),
    "plan": CommandEntry(
        "Show how many calls and tokens a run would need, and what it could cost.",
        "suites.plan:plan",
        arguments="suites.options:PlanArguments",
    ),
    "run": CommandEntry("Run suites and print the results.", "suites.run:run", arguments="suites.options:RunArguments"),
    "runs": CommandEntry("Show, continue, export and delete runs.", commands=RUNS),
    "batch": CommandEntry("Show, fetch, cancel and reconcile batches.", commands=BATCH),
    "report": CommandEntry(
        "Write a report of a stored suite run or verification: terminal, HTML, JUnit, SARIF, and more.\n\n"
        "The exit code is 0, whatever the results are.",
        "runs.report:report",
    ),
    "cases": CommandEntry("List the cases of a suite run; with CASE, show one in full.", "suites.cases:cases"),
    "compare": CommandEntry(
        "Compare two suite runs, paired by case and epoch. Exit 1 if B is worse, 6 if the runs could not have noticed.",
        "suites.compare:compare",
    ),
    "baseline": CommandEntry("Manage baselines: named runs that other runs are compared with.", commands=BASELINE),
    "trend": CommandEntry(
        "Show the history of a suite over runs with the same name: pass rates with intervals, costs, baselines.",
        "suites.trend:trend",
    ),
    "verify": CommandEntry(
        "Verify code with agents, in waves: the next wave starts only when this one has passed.\n\n"
        "Choose the files by paths, or with one of --changed [REF], --staged and --pending. "
        "Exit code 0 means that everything was checked and passed.",
        "verify.command:verify",
        VERIFY,
        arguments="verify.options:VerifyCommandArguments",
    ),
    "council": CommandEntry(
        "Let agents discuss a question in rounds: they propose answers, score each other's, and the best one wins.\n\n"
        "Exit code 0 means that a proposal won.",
        "work.command:start",
        COUNCIL,
        arguments=partial(_made, "council"),
    ),
    "battle": CommandEntry(
        "Let an agent talk with a counterpart until validators or judges decide that a goal is reached.\n\n"
        "Exit code 0 means that the goal was reached, or that no goal was set and the battle ran to its limit.",
        "work.command:start",
        BATTLE,
        arguments=partial(_made, "battle"),
    ),
    "scale": CommandEntry(
        "Measure agents or prompts with many battles: outcomes, intervals, times, costs, and a revised prompt.\n\n"
        "Exit code 0 means that --min-goal-rate is met; without it, that every battle reached its goal or its limit.",
        "work.command:start",
        SCALE,
        arguments=partial(_made, "scale"),
    ),
    "trace": CommandEntry(
        "Show a council round by round; for any other run, list its events.", "councils.command:trace"
    ),
    "chain": CommandEntry("Run and resume chains: steps of prompts and commands, in order.", commands=CHAIN),
    "review": CommandEntry(
        "Add a review of a verdict, or list reviews and their agreement with the judge.",
        "suites.review:review",
    ),
    "evidence": CommandEntry("Export, verify and rescore signed evidence of suite runs.", commands=EVIDENCE),
    "task": CommandEntry("Submit, review and cancel tasks for the slots of the pool.", commands=TASK),
    "pool": CommandEntry(
        "Start, scale and drain the pool of slots; share texts with slots and send them messages.", commands=POOL
    ),
    "fan-out": CommandEntry(
        "Run one task for each prompt in a file; print the results in the same order.",
        "pool.fan_out:fan_out",
        arguments="pool.options:FanOutArguments",
    ),
    "worker": CommandEntry(
        "Execute submitted runs, such as those of --detach, until stopped; exit 1 if one exceeded a budget.",
        "service.worker:worker",
    ),
    "serve": CommandEntry(
        "Serve the web page and the HTTP API, and execute submitted runs, until stopped; runs can be resumed.",
        "service.serve:serve",
    ),
    "durable": CommandEntry(
        "Run a program whose model calls are journaled; started again after a failure, it gets its answers from there.",
        "gateway.durable:durable",
    ),
    "record": CommandEntry(
        "Run a program and write its model calls with their answers to a tape; ends with the exit code of the program.",
        "gateway.tape:record",
    ),
    "replay": CommandEntry(
        "Run a program with the answers of a tape, and no provider; ends with 1 if a request was not on it.",
        "gateway.tape:replay",
    ),
    "view": CommandEntry(
        "Open the web page in a browser; starts a server on a free port if none is running for this store.",
        "service.serve:view",
    ),
    "mcp": CommandEntry(
        "Serve MCP tools to a coordinating agent, and execute what it starts, until the client disconnects.",
        "service.mcp:mcp",
    ),
    "audit": CommandEntry(
        "List what users of the server started, reviewed and canceled, newest first.", "service.audit:audit"
    ),
    "costs": CommandEntry(
        "Show the cost by day, agent and run, and what is left of each budget; days are in UTC.", "costs:costs"
    ),
    "metrics": CommandEntry("Print metrics of the store in Prometheus text format.", "service.metrics:metrics"),
    "sim": CommandEntry("Start a fake provider and print its URLs as JSON.", "sim:sim"),
    "schema": CommandEntry("Print a JSON Schema for editors.", "project:schema"),
    "store": CommandEntry("Inspect, compact and copy the store.", commands=STORE),
    "doctor": CommandEntry(
        "Check settings, agents, store and network; exit 3 if something is broken.", "doctor:doctor"
    ),
    "completion": CommandEntry("Print the completion script for bash, zsh or fish.", "completion:completion"),
}

ABOUT = """Run calls to AI agents as durable work: answered once, paid once, inside a hard budget.

A RUN is given as its id, the beginning of its id, its name (the newest run with that name), or `last`."""

app = CliGroup(
    "muster", CommandEntry(ABOUT, commands=CommandTable(COMMANDS, "work.table:made_commands", before="worker"))
)
