"""The sections of muster.toml that declare agents, one for each kind."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from muster.domain.money import from_usd

MODEL_KINDS = ("anthropic", "openai", "scripted")


class Strict(BaseModel):
    """A section in which nothing may be misspelled."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PriceSection(Strict):
    """Dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    cache_write_1h: float | None = Field(default=None, ge=0)


class _Agent(Strict):
    """What can be said of every agent."""

    system: str = ""
    max_tokens: int = Field(default=2048, gt=0)
    temperature: float | None = Field(default=None, ge=0)
    seed: int | None = None
    concurrency: int | None = Field(default=None, gt=0)
    requests_per_minute: int | None = Field(default=None, gt=0)
    tokens_per_minute: int | None = Field(default=None, gt=0)


class ModelSection(_Agent):
    """A model behind an API, or a script."""

    kind: Literal["anthropic", "openai", "scripted"]
    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None  # the variable that holds the key; the key itself never stands in the file
    script: Path | None = None
    price: PriceSection | None = None
    batch_price: PriceSection | None = None  # in batches; left out, they cost as much as live calls


Dollars = Annotated[float, Field(ge=0), Field(le=1_000_000)]


class _Own(_Agent):
    """An agent that answers on this machine or in the user's own service."""

    timeout_secs: float | None = Field(default=None, gt=0)
    budget_usd: Dollars | None = None  # the most that one call can cost; reserved before it starts

    def reserve(self) -> int | None:
        """Give what one call reserves, in microdollars; None when nothing is said."""
        return None if self.budget_usd is None else from_usd(f"{self.budget_usd:.6f}")


class _Process(_Own):
    """An agent that is a process of ours."""

    working_dir: Path | None = None
    env: dict[str, str] = Field(default_factory=dict)
    pass_env: tuple[str, ...] = ()  # variables of ours that it gets; secrets only in this way
    idle_secs: float | None = Field(default=None, gt=0)


class ProgramSection(_Process):
    """Any program on standard input and output."""

    kind: Literal["program"]
    command: tuple[str, ...] = ()
    mode: Literal["exec", "plain", "chat"] = "exec"


class HttpSection(_Own):
    """The user's own service: JSON is posted, the answer is found by JSONPath."""

    kind: Literal["http"]
    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    key_env: str | None = None  # sent as a bearer token
    body: dict[str, Any] | None = None  # what is posted; "{prompt}", "{system}" and "{messages}" stand for themselves
    answer: str | None = None  # JSONPaths; without one, the usual places
    input_tokens: str | None = None
    output_tokens: str | None = None
    tool_calls: str | None = None
    cost_usd: str | None = None
    price: PriceSection | None = None


class PythonSection(_Own):
    """An async function of the user's."""

    kind: Literal["python"]
    function: str  # "module:name"
    price: PriceSection | None = None


class ClaudeSection(_Process):
    """Claude Code, through its SDK."""

    kind: Literal["claude-code"]
    model: str | None = None
    fallback_model: str | None = None
    permission_mode: Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"] = "default"
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    mcp_servers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    max_turns: int | None = Field(default=None, gt=0)
    cli_path: Path | None = None  # left out: the one that the SDK brings along; never one found on PATH
    key_env: str = "ANTHROPIC_API_KEY"
    subscription: bool = False  # it is logged in with a subscription: costs are imputed, HOME is passed on


class CliSection(_Process):
    """Any other CLI agent: how the prompt goes in, and how answer, cost and session come out."""

    kind: Literal["cli"]
    command: tuple[str, ...]  # "{prompt}", "{system}", "{model}", "{session}" and "{budget}" stand for themselves
    resume: tuple[str, ...] = ()  # added to the command to go on with "{session}"
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
    subscription: bool = False


AgentSection = Annotated[
    ModelSection | ProgramSection | HttpSection | PythonSection | ClaudeSection | CliSection,
    Field(discriminator="kind"),
]


def key_variable(section: AgentSection) -> str | None:
    """Name the variable that holds the key of an agent, if the section names one."""
    return getattr(section, "key_env", None)
