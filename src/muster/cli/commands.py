"""The table of commands: name, what the help says of it, and the function; its module is loaded when it is called."""

from muster.cli.line import CliGroup, CommandEntry

RUNS = {
    "list": CommandEntry("List the newest runs.", "runs.list:list_runs"),
    "show": CommandEntry("Show one run: money, calls, errors, and how to go on.", "runs.show:show"),
    "watch": CommandEntry(
        "Follow a run until it is over or stands still; exits as the run's own command does.", "runs.watch:watch"
    ),
    "delete": CommandEntry("Forget runs with everything in them.", "runs.show:delete"),
    "start": CommandEntry("Start a run of one of your own workloads and drive it to its end.", "runs.start:start"),
    "cancel": CommandEntry("Cancel a run and its batches; its replies stay and can be reused.", "runs.cancel:cancel"),
    "resume": CommandEntry("Go on with a run; replies that are known cost nothing.", "runs.resume:resume"),
    "fork": CommandEntry("Make a new run that asks anew from a key on.", "runs.resume:fork"),
    "replay": CommandEntry("Do a run again from what is stored; nobody is asked.", "runs.resume:replay"),
    "rejudge": CommandEntry(
        "Judge the answers of a suite run anew; they are not paid for again.", "suites.run:rejudge"
    ),
    "export": CommandEntry("Write a run with everything in it to a file.", "runs.transfer:export"),
    "import": CommandEntry("Store a run from a file; it keeps its id.", "runs.transfer:import_"),
}

BATCH = {
    "list": CommandEntry("List the newest batches.", "batches.list:list_batches"),
    "show": CommandEntry("Show one batch: members, money, times, its runs.", "batches.list:show"),
    "stats": CommandEntry("Say how long batches took, how they ended, and what they saved.", "batches.list:stats"),
    "watch": CommandEntry("Follow a batch until it is over; fetch it if nobody else does.", "batches.fetch:watch"),
    "fetch": CommandEntry("Wait for a batch and bring its results in.", "batches.fetch:fetch"),
    "cancel": CommandEntry("Have the provider stop a batch; keep what it produced.", "batches.fetch:cancel"),
    "reconcile": CommandEntry(
        "Find out what became of batches that may have been sent.", "batches.reconcile:reconcile"
    ),
}

BASELINE = {
    "set": CommandEntry(
        "Let a name stand for a run; a run from a file is imported, unless it is here already.",
        "suites.baseline:set_baseline",
    ),
    "list": CommandEntry("List all baselines.", "suites.baseline:list_baselines"),
    "remove": CommandEntry("Forget a name; the run stays.", "suites.baseline:remove"),
}

HOOK = {
    "install": CommandEntry(
        "Write a pre-commit hook that verifies what is staged: live, and with nothing staged a commit goes through.",
        "verify.setup:install",
    ),
}

VERIFY = {
    "plan": CommandEntry(
        "Say what would be verified by whom, in how many calls, and what that could cost.", "verify.plan:plan"
    ),
    "resume": CommandEntry(
        "Go on with a verification; of one that is over, say what it came to.", "verify.command:resume"
    ),
    "metrics": CommandEntry(
        "Say how long verifications took, how they ended, what agents found, and what a cycle cost.",
        "verify.metrics:metrics",
    ),
    "allow-secret": CommandEntry(
        "Write an exception into verify.yaml: a secret of this kind may stand at this line.",
        "verify.setup:allow_secret",
    ),
    "hook": CommandEntry("The hook with which git verifies what is about to be committed.", commands=HOOK),
}

EVIDENCE = {
    "keygen": CommandEntry(
        "Make a key to sign with, and its public half beside it. Nothing is ever overwritten.",
        "suites.evidence:keygen",
    ),
    "export": CommandEntry(
        "Write one signed archive of a suite run: suite, prompts, calls, verdicts, figures. Secrets are taken out.",
        "suites.evidence:export",
    ),
    "verify": CommandEntry(
        "Check that nothing in an archive was changed since it was signed. Needs no store and no network.",
        "suites.evidence:verify",
    ),
    "rescore": CommandEntry(
        "Check an archive, then read, check and score its replies again and compare. Nobody is asked.",
        "suites.evidence:rescore",
    ),
}

STORE = {
    "info": CommandEntry("Say where the store is, how large, and whether it is sound.", "store:info"),
    "vacuum": CommandEntry("Give free space back to the disk; refused while runs are driven.", "store:vacuum"),
}

COMMANDS = {
    "demo": CommandEntry("Show a real piece of work, and a suite, that need no key.", "demo.command:demo"),
    "ask": CommandEntry("Ask one question and print the answer.", "runs.ask:ask"),
    "init": CommandEntry(
        "Make a folder with something to begin with: a small suite, or the verification agents that are shipped.",
        "project:init",
    ),
    "validate": CommandEntry(
        "Say whether suites and verification agents are valid; exit 2 when one is not.", "suites.validate:validate"
    ),
    "lint": CommandEntry(
        "Say what is doubtful in suites; exit 1 when anything is, and 2 when a suite is not valid.",
        "suites.validate:lint",
    ),
    "generate": CommandEntry(
        "Have test cases written by a model; each is validated, and none is nearly there already.",
        "suites.generate:generate",
    ),
    "plan": CommandEntry(
        "Say how many calls a run would make, of how many tokens, and what that could cost.", "suites.plan:plan"
    ),
    "run": CommandEntry("Run suites and print how the cases ended.", "suites.run:run"),
    "runs": CommandEntry("Everything about runs: see them, go on with them, move them.", commands=RUNS),
    "batch": CommandEntry("Everything about batches: see, fetch, cancel and reconcile them.", commands=BATCH),
    "report": CommandEntry(
        "Report a suite run or a verification from the store: for people, for CI, for a pull request.\n\n"
        "Not a gate: it exits 0.",
        "suites.report:report",
    ),
    "compare": CommandEntry(
        "Compare two suite runs, paired by case and epoch. Exits 1 when B is worse or the evidence is not enough.",
        "suites.compare:compare",
    ),
    "baseline": CommandEntry("Names for runs that others are compared with.", commands=BASELINE),
    "verify": CommandEntry(
        "Have code looked at by agents, in waves: the next one begins only when everybody in this one has passed.\n\n"
        "Choose the files in one way: paths, --changed [REF], --staged or --pending. "
        "Exit code 0 means that everything was checked and has passed.",
        "verify.command:verify",
        VERIFY,
    ),
    "review": CommandEntry(
        "Say whether a verdict was right, or see what was said and how far it agrees with the judge.",
        "suites.review:review",
    ),
    "evidence": CommandEntry("Signed evidence of suite runs: make it, check it, score it again.", commands=EVIDENCE),
    "worker": CommandEntry(
        "Drive submitted runs, also those whose driver died; exit code 1 if one of them exceeded a budget.",
        "worker:worker",
    ),
    "sim": CommandEntry("Serve the rehearsal; the first line is JSON with addresses.", "sim:sim"),
    "schema": CommandEntry("Print a JSON Schema for editors, made from what this version reads.", "project:schema"),
    "store": CommandEntry("Look at the store, and give its free space back.", commands=STORE),
    "doctor": CommandEntry("Say what is fine and what is not; exit 3 when broken.", "doctor:doctor"),
    "completion": CommandEntry("Print the script for completion in bash, zsh or fish.", "completion:completion"),
}

ABOUT = """Runs fleets of AI agents as durable work: answered once, paid once, inside a hard budget.

RUN is an id, the beginning of one, a name (the newest with it), or `last`."""

app = CliGroup("muster", CommandEntry(ABOUT, commands=COMMANDS))
