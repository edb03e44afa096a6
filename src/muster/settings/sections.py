"""The sections of muster.toml that declare agents, one for each kind."""

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from muster.domain.canonical import Json, JsonObject
from muster.domain.effort import MIN_THINKING
from muster.domain.money import MAX_USD, from_usd
from muster.domain.provider import PROVIDERS
from muster.text.typed import Meta, Struct, asdict, field

Count = Annotated[int, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0)]
Amount = Annotated[float, Meta(ge=0)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
ThinkingBudget = Annotated[int, Meta(ge=MIN_THINKING)]
Dollars = Annotated[float, Meta(ge=0, le=MAX_USD)]
MediaWord = Literal["image", "document"]


class Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section in which nothing may be misspelled."""


class PriceSection(Strict, frozen=True, kw_only=True):
    """Dollars for a million tokens."""

    input: Amount
    output: Amount
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    cache_write_1h: Amount | None = None

    def dollars(self) -> dict[str, Any]:
        """Return the amounts by their names."""
        return asdict(self)


class _Agent(Strict, frozen=True, kw_only=True):
    """What can be said of every agent."""

    system: str = ""
    max_tokens: Count | None = None
    temperature: Amount | None = None
    seed: int | None = None
    concurrency: Count | None = None
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None


class CapabilitiesSection(Strict, frozen=True, kw_only=True):
    """What a model takes, where that is not known, or was known wrongly."""

    effort: tuple[Effort, ...] = ()
    thinking: tuple[Literal["adaptive", "between_tools", "off", "budget"], ...] = ()


def tiers_of(kind: str) -> tuple[str, ...]:
    """Return the tiers of service that a provider can be asked for."""
    return tuple(PROVIDERS[kind].tiers) if kind in PROVIDERS else ()


class ModelSection(_Agent, frozen=True, kw_only=True):
    """A model behind an API, or a script."""

    kind: Literal[
        "anthropic", "openai", "azure", "bedrock", "bedrock-claude", "vertex", "vertex-claude", "openrouter", "gemini",
        "groq", "mistral", "deepseek", "xai", "together", "fireworks", "cerebras", "ollama", "lmstudio", "vllm",
        "llamacpp", "scripted",
    ]  # fmt: skip
    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None  # the variable that holds the key; the key itself never stands in the file
    key_command: tuple[str, ...] = ()  # a program that prints the key, without a shell
    key_lifetime_secs: Seconds | None = None  # for which such a key is used; none: half an hour
    key_pass_env: tuple[str, ...] = ()  # variables of ours that it gets besides PATH, LANG and HOME
    script: Path | None = None
    price: PriceSection | None = None
    # The form of OpenAI's API; none: Responses at OpenAI's own address for all that it can say, else chat completions.
    wire: Literal["responses", "chat"] | None = None
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None  # of openai; none: found out
    batch_price: PriceSection | None = None  # in batches; left out, they cost as much as live calls
    service_tier: Literal["auto", "default", "flex", "priority", "fast"] | None = None  # none: as the provider decides
    inference_geo: Literal["global", "us"] | None = None  # where inference takes place; none: as the account decides
    tier_price: PriceSection | None = None  # in that tier, where the price list does not have it
    priced_as: str | None = None  # PROVIDER/MODEL whose price holds, for a deployment with a name of its own
    headers: dict[str, str] = field(default_factory=dict)  # besides the key; "$NAME" is the variable NAME
    query: dict[str, str] = field(default_factory=dict)  # of the address, in the same way
    extra: JsonObject = field(default_factory=dict)  # what else the body of a request says
    effort: Effort | None = None  # how much it thinks; none: as the provider decides
    thinking: Literal["adaptive", "between_tools", "off"] | ThinkingBudget | None = None
    thinking_display: Literal["summarized", "omitted"] | None = None  # none: as the provider decides
    capabilities: CapabilitiesSection | None = None
    media: tuple[MediaWord, ...] | None = None  # what it can be shown; none: as its name says

    @property
    def tiers(self) -> tuple[str, ...]:
        """The tiers of service that its provider can be asked for."""
        return tiers_of(self.kind)

    @property
    def sent(self) -> dict[str, str]:
        """What is sent with every request beside its body; nobody may read it."""
        return {**self.headers, **self.query}


class _Own(_Agent, frozen=True, kw_only=True):
    """An agent that answers on this machine or in the user's own service."""

    timeout_secs: Seconds | None = None
    budget_usd: Dollars | None = None  # the most that one call can cost; reserved before it starts

    def reserve(self) -> int | None:
        """Return what one call reserves, in microdollars; None when nothing is said."""
        return None if self.budget_usd is None else from_usd(f"{self.budget_usd:.6f}")


class _Process(_Own, frozen=True, kw_only=True):
    """An agent that is a process of ours."""

    working_dir: Path | None = None
    env: dict[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()  # variables of ours that it gets; secrets only in this way
    idle_secs: Seconds | None = None


class ProgramSection(_Process, frozen=True, kw_only=True):
    """Any program on standard input and output."""

    kind: Literal["program"]
    command: tuple[str, ...] = ()
    mode: Literal["exec", "plain", "chat"] = "exec"


class HttpSection(_Own, frozen=True, kw_only=True):
    """The user's own service: JSON is posted, the answer is found by JSONPath."""

    kind: Literal["http"]
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    key_env: str | None = None  # sent as a bearer token
    body: dict[str, Json] | None = None  # what is posted; "{prompt}", "{system}" and "{messages}" stand for themselves
    answer: str | None = None  # JSONPaths; without one, the usual places
    input_tokens: str | None = None
    output_tokens: str | None = None
    tool_calls: str | None = None
    cost_usd: str | None = None
    price: PriceSection | None = None


class PythonSection(_Own, frozen=True, kw_only=True):
    """An async function of the user's."""

    kind: Literal["python"]
    function: str  # "module:name"
    price: PriceSection | None = None
    media: tuple[MediaWord, ...] | None = None  # what it can be shown; none: nothing


class ClaudeSection(_Process, frozen=True, kw_only=True):
    """Claude Code, through its SDK."""

    kind: Literal["claude-code"]
    model: str | None = None
    fallback_model: str | None = None
    permission_mode: Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"] = "default"
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    mcp_servers: dict[str, dict[str, Json]] = field(default_factory=dict)
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    max_turns: Count | None = None
    cli_path: Path | None = None  # left out: the one that the SDK brings along; never one found on PATH
    key_env: str = "ANTHROPIC_API_KEY"
    subscription: bool = False  # it is logged in with a subscription: costs are imputed, HOME is passed on


class CliSection(_Process, frozen=True, kw_only=True):
    """Any other CLI agent: how the prompt goes in, and how answer, cost and session come out."""

    kind: Literal["cli"]
    command: tuple[str, ...]  # "{prompt}", "{system}", "{model}", "{session}" and "{budget}" stand for themselves
    resume: tuple[str, ...] = ()  # added to the command to go on with "{session}"
    allow: tuple[str, ...] = ()  # added to it for each "{tool}" that a person has granted
    mcp: tuple[str, ...] = ()  # added in a slot of the pool, whose MCP server is told of in the file "{mcp_config}"
    model: str | None = None
    output: Literal["text", "json", "jsonl"] = "text"
    answer: str | None = None  # JSONPaths, into the answer or into the line that holds it
    cost_usd: str | None = None
    session: str | None = None
    turns: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    error: str | None = None  # where it says that it failed, and why
    ends: str | None = None  # jsonl: a JSONPath that finds something in the last line
    delta: str | None = None  # jsonl: text as it is written
    tool_name: str | None = None  # jsonl: a tool is used
    tool_id: str | None = None
    tool_arguments: str | None = None
    tool_done: str | None = None  # jsonl: the id of a tool that has ended
    tool_result: str | None = None
    tool_failed: str | None = None  # jsonl: the id of a tool that has failed
    permission: str | None = None  # jsonl: it asks for permission to use the tool that is found here
    permission_input: str | None = None  # jsonl: what it wants to use that tool with
    permission_patterns: tuple[str, ...] = ()  # regular expressions; a line that one finds asks for permission
    message: dict[str, Json] | None = None  # jsonl: the line that tells it "{message}" while it works, with an "{id}"
    message_taken: str | None = None  # jsonl: the id of a message that it has taken in
    subscription: bool = False


class HumanSection(Strict, frozen=True, kw_only=True):
    """A person, whose answers a run waits for."""

    kind: Literal["human"]
    timeout_secs: Seconds | None = None  # for which an answer is waited for, whether or not a process runs


class PoolSection(Strict, frozen=True, kw_only=True):
    """`[pool]`: how many slots work on tasks, what they may cost, and where they work."""

    slots: Count = 2
    min_slots: Count = 1
    max_slots: Count = 16
    budget_usd: Dollars | None = None  # of all tasks since the pool was created
    default_task_budget_usd: Dollars | None = None
    slot_assignment_timeout_secs: Seconds = 300.0  # of `task run`
    supervisor_enabled: bool = True  # a slot whose agent could not be started is tried again
    supervisor_interval_secs: Seconds = 30.0  # before the first of these tries, doubled before each other
    max_restarts: Count = 3  # failures to start an agent, after which its slot takes no more tasks
    max_pending: Count = 10_000  # tasks
    recursion: bool = False  # whether agents in slots can start tasks
    isolation: Literal["none", "worktree", "clone"] | None = None  # None: worktree for CLI agents in git, else none
    worktree_base_dir: Path | None = None  # left out: .muster/worktrees of the repository
    worktree_keep_days: Amount | None = None  # None: until their work is merged
    copy: tuple[str, ...] = ()  # files that a new worktree gets, such as ".env"
    on_permission: Literal["fail", "ask"] = "fail"  # what a task does whose agent asks for permission
    setup: tuple[tuple[str, ...] | str, ...] = ()  # commands that prepare a new worktree; never run by a shell
    setup_timeout_secs: Seconds = 900.0  # of each of them
    agent: str | None = None
    system: str = ""

    @property
    def setup_commands(self) -> tuple[tuple[str, ...], ...]:
        """Return the commands that prepare a new worktree as arguments; raises ValueError for an open quote."""
        return tuple(tuple(shlex.split(one)) if isinstance(one, str) else one for one in self.setup)


class SlotSection(Strict, frozen=True, kw_only=True):
    """One of `[[slots]]`: who a slot is, and what its agent is set to."""

    name: str
    role: str = ""
    description: str = ""
    agent: str | None = None
    system: str = ""
    tags: tuple[str, ...] = ()
    model: str | None = None
    effort: str | None = None
    permission_mode: str | None = None
    max_turns: Count | None = None
    tools: tuple[str, ...] = ()
    on_permission: Literal["fail", "ask"] | None = None  # None: that of the pool

    @property
    def settings(self) -> dict[str, Json]:
        """Return what it sets of its agent."""
        names = ("model", "effort", "permission_mode", "max_turns")
        found: dict[str, Json] = {name: value for name in names if (value := getattr(self, name)) is not None}
        return found | ({"tools": list(self.tools)} if self.tools else {})


class BattlesSection(Strict, frozen=True, kw_only=True):
    """`[battles]`: who judges battles that name nobody, and the limits of scale tests."""

    judge: str | None = None  # when a goal is set; left out: the small model of the provider of the agent
    confirm_judge: str | None = None  # left out: the judge
    counterpart: str | None = None  # left out: the agent under test plays both sides
    runs: Count = 10  # battles of one scale test, at most
    concurrency: Count = 3  # battles of one scale test at the same time, at most


class ObservabilitySection(Strict, frozen=True, kw_only=True):
    """`[observability]`: traces of OpenTelemetry."""

    otel: bool = False
    otel_content: bool = False  # prompts and answers in spans


AgentSection = ModelSection | ProgramSection | HttpSection | PythonSection | ClaudeSection | CliSection | HumanSection

KINDS: dict[str, type[AgentSection]] = {
    **dict.fromkeys(get_args(get_type_hints(ModelSection)["kind"]), ModelSection),
    "program": ProgramSection,
    "http": HttpSection,
    "python": PythonSection,
    "claude-code": ClaudeSection,
    "cli": CliSection,
    "human": HumanSection,
}


def key_variable(section: AgentSection) -> str | None:
    """Name the variable that holds the key of an agent, if the section names one."""
    return getattr(section, "key_env", None)
