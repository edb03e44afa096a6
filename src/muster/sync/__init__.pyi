"""Made by `make docs`: the types of `muster.sync`, from those of the asynchronous surface."""

from collections.abc import AsyncGenerator
from collections.abc import AsyncIterator
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import AbstractContextManager
from muster import testing as testing
from muster.agents.base import Agent as Agent
from muster.agents.base import InteractiveAgent as InteractiveAgent
from muster.agents.model_list import OfferedModel
from muster.app.agent_kinds.given import AgentFunction as AgentFunction
from muster.app.agent_kinds.given import GivenAgent as GivenAgent
from muster.app.base.costs import Quoting
from muster.app.base.feeds import Resync as Resync
from muster.app.base.feeds import RunEnd as RunEnd
from muster.app.base.feeds import RunUpdate
from muster.app.base.feeds import TextDelta as TextDelta
from muster.app.base.media import document as document
from muster.app.base.media import image as image
from muster.app.base.stores import StoreCopy
from muster.app.battles.battles import MessagePage
from muster.app.battles.battles import Standing
from muster.app.chains.chains import ChainSize
from muster.app.chains.plan import ChainPlan
from muster.app.councils.councils import CouncilPlan
from muster.app.gateway.gateway import Gateway
from muster.app.muster import AskOptions
from muster.app.muster import StartOptions
from muster.app.muster import SubmitOptions
from muster.app.muster import T
from muster.app.parts.audit import AuditedAction
from muster.app.parts.budgets import ServerFunds
from muster.app.parts.library import LibraryItem
from muster.app.parts.library import LibraryKind
from muster.app.parts.library import OfferedAgent
from muster.app.parts.spending import Costs as Costs
from muster.app.pool.driver import OnEnd
from muster.app.pool.driver import OnError
from muster.app.pool.driver import PoolDriver
from muster.app.pool.monitor import LogRecord
from muster.app.pool.monitor import PoolSnapshot
from muster.app.pool.orders import TaskRunTerms
from muster.app.pool.orders import TaskTerms
from muster.app.pool.status import PoolStatus
from muster.app.pool.status import Slot
from muster.app.pool.task_queries import Task
from muster.app.pool.trees import OverlapReport
from muster.app.pool.trees import SavedTaskWork
from muster.app.pool.values import TaskSpec as TaskSpec
from muster.app.project.diagnosis import DoctorReport
from muster.app.project.files import CreatedFolder
from muster.app.project.validation import Linted
from muster.app.project.validation import Validated
from muster.app.questions.ask import AskOutcome as AskOutcome
from muster.app.questions.ask import Question as Question
from muster.app.runs.batches import OnLook
from muster.app.runs.batches import Reconciled
from muster.app.runs.details import CallDetails
from muster.app.runs.details import RunBatches
from muster.app.runs.details import RunDetails
from muster.app.runs.options import RunOptions as RunOptions
from muster.app.runs.questions import AnswerOutcome
from muster.app.runs.questions import OpenQuestion as OpenQuestion
from muster.app.runs.reports import AnyReport
from muster.app.suites.evidence import Exported
from muster.app.suites.exact import ExactCount
from muster.app.suites.generation import Generated
from muster.app.suites.generation import Generation as Generation
from muster.app.suites.plan import SuitePlan
from muster.app.suites.results import SuiteSummary
from muster.app.suites.results import WholeCase
from muster.app.suites.reviews import NamedRun
from muster.app.suites.reviews import ReviewDraft as ReviewDraft
from muster.app.suites.suites import AddedReview
from muster.app.suites.suites import AnswerSource as AnswerSource
from muster.app.suites.values import ComparisonTerms as ComparisonTerms
from muster.app.suites.values import RowFilter as RowFilter
from muster.app.suites.values import SuiteChoice as SuiteChoice
from muster.app.suites.values import SuiteSpec as SuiteSpec
from muster.app.verify.code_repairs import OnTask
from muster.app.verify.plan import VerifyPlan
from muster.app.verify.repair import Fixed
from muster.app.verify.request import ConcludedVerification
from muster.app.verify.request import LeftBehind
from muster.app.verify.request import Prepared
from muster.app.verify.request import Repair
from muster.app.verify.request import StartedVerification
from muster.app.verify.request import VerifyChoice as VerifyChoice
from muster.app.verify.request import VerifyRequest as VerifyRequest
from muster.app.verify.secrets import Allowed
from muster.app.verify.secrets import Installed
from muster.app.verify.values import FileSelection as FileSelection
from muster.battles.order import BattleGoal
from muster.battles.order import BattleOrder
from muster.battles.order import PromptVariant
from muster.battles.order import ScaleOrder
from muster.battles.scale_spec import ScaleSpec
from muster.battles.scale_summary import ScaleReport
from muster.battles.spec import BattleSpec
from muster.battles.summary import BattleReport
from muster.battles.validators import ReplyValidator
from muster.battles.values import BattleDecision
from muster.councils.order import CouncilOrder
from muster.councils.rules.outcome import CouncilOutcome
from muster.councils.rules.values import CouncilMember
from muster.councils.spec import CouncilSpec
from muster.councils.summary import CouncilReport
from muster.domain.agent import Command as Command
from muster.domain.agent import Profile as Profile
from muster.domain.agent import Quote as Quote
from muster.domain.agent import Timeouts as Timeouts
from muster.domain.batch import Batch as Batch
from muster.domain.batch import BatchState as BatchState
from muster.domain.budget import Allowance as Allowance
from muster.domain.budget import Budgets
from muster.domain.budget import Funds as Funds
from muster.domain.budget import UserBudget
from muster.domain.call import Message as Message
from muster.domain.call import Quality as Quality
from muster.domain.call import Reply as Reply
from muster.domain.call import Request as Request
from muster.domain.call import Role as Role
from muster.domain.call import Stop as Stop
from muster.domain.call import Tool as Tool
from muster.domain.call import ToolCall as ToolCall
from muster.domain.call import Usage as Usage
from muster.domain.call import message as message
from muster.domain.canonical import DataT_co
from muster.domain.canonical import Json as Json
from muster.domain.content import AgentNote
from muster.domain.dispatch import Dispatch as Dispatch
from muster.domain.entry import Entry
from muster.domain.entry import Event as Event
from muster.domain.entry import Signal as Signal
from muster.domain.errors import AccessDenied as AccessDenied
from muster.domain.errors import AgentFailed as AgentFailed
from muster.domain.errors import AgentUnusable as AgentUnusable
from muster.domain.errors import AlreadyContinued as AlreadyContinued
from muster.domain.errors import AuthRefused as AuthRefused
from muster.domain.errors import BadArgument as BadArgument
from muster.domain.errors import BadConfiguration as BadConfiguration
from muster.domain.errors import BadExit as BadExit
from muster.domain.errors import BadFile as BadFile
from muster.domain.errors import BadOutput as BadOutput
from muster.domain.errors import BatchCanceled as BatchCanceled
from muster.domain.errors import BattleFailed as BattleFailed
from muster.domain.errors import BudgetExhausted as BudgetExhausted
from muster.domain.errors import CallFailed as CallFailed
from muster.domain.errors import ChildFailed as ChildFailed
from muster.domain.errors import Conflict as Conflict
from muster.domain.errors import ConflictingArguments as ConflictingArguments
from muster.domain.errors import CouncilFailed as CouncilFailed
from muster.domain.errors import Expired as Expired
from muster.domain.errors import FixSpec as FixSpec
from muster.domain.errors import Interrupted as Interrupted
from muster.domain.errors import InvalidRequest as InvalidRequest
from muster.domain.errors import KeyReused as KeyReused
from muster.domain.errors import LeaseLost as LeaseLost
from muster.domain.errors import LeftWaiting as LeftWaiting
from muster.domain.errors import LimitReached as LimitReached
from muster.domain.errors import MergeConflict as MergeConflict
from muster.domain.errors import MusterError as MusterError
from muster.domain.errors import NotFound as NotFound
from muster.domain.errors import NotStarted as NotStarted
from muster.domain.errors import OutcomeUnknown as OutcomeUnknown
from muster.domain.errors import Overdraft as Overdraft
from muster.domain.errors import Overloaded as Overloaded
from muster.domain.errors import PermissionAsked as PermissionAsked
from muster.domain.errors import ProviderFault as ProviderFault
from muster.domain.errors import QueueFailed as QueueFailed
from muster.domain.errors import RateLimited as RateLimited
from muster.domain.errors import RecordedFailure as RecordedFailure
from muster.domain.errors import ReplayMiss as ReplayMiss
from muster.domain.errors import RetriesExhausted as RetriesExhausted
from muster.domain.errors import RunCanceled as RunCanceled
from muster.domain.errors import RunFailed as RunFailed
from muster.domain.errors import RunTimedOut as RunTimedOut
from muster.domain.errors import Stalled as Stalled
from muster.domain.errors import StepFailed as StepFailed
from muster.domain.errors import StopRun as StopRun
from muster.domain.errors import StoreAway as StoreAway
from muster.domain.errors import StoreFailed as StoreFailed
from muster.domain.errors import StoreUnreachable as StoreUnreachable
from muster.domain.errors import TierFull as TierFull
from muster.domain.errors import TimedOut as TimedOut
from muster.domain.errors import ToolError as ToolError
from muster.domain.errors import ToolTurnsExceeded as ToolTurnsExceeded
from muster.domain.errors import TryLater as TryLater
from muster.domain.errors import UnknownModel as UnknownModel
from muster.domain.errors import Unreachable as Unreachable
from muster.domain.errors import Untrusted as Untrusted
from muster.domain.flaw import FieldFlaw
from muster.domain.ids import BatchId
from muster.domain.ids import RunId
from muster.domain.isolation import Isolation
from muster.domain.kind import WorkKind
from muster.domain.media import Media as Media
from muster.domain.media import MediaFile
from muster.domain.money import Microdollars as Microdollars
from muster.domain.observation import AttemptBegan as AttemptBegan
from muster.domain.observation import AttemptEnded as AttemptEnded
from muster.domain.observation import BatchBegan as BatchBegan
from muster.domain.observation import BatchEnded as BatchEnded
from muster.domain.observation import CallBegan as CallBegan
from muster.domain.observation import CallEnded as CallEnded
from muster.domain.observation import Observation as Observation
from muster.domain.observation import Observer as Observer
from muster.domain.observation import RunBegan as RunBegan
from muster.domain.observation import RunEnded as RunEnded
from muster.domain.order import FieldForm
from muster.domain.patience import Patience as Patience
from muster.domain.run import Driver
from muster.domain.run import Origin
from muster.domain.run import Run as Run
from muster.domain.run import RunState as RunState
from muster.domain.run import User as User
from muster.domain.run_order import RunOrder
from muster.domain.task import TaskState as TaskState
from muster.engine.base.clock import Clock as Clock
from muster.engine.calls.retry import RetryPolicy as RetryPolicy
from muster.engine.context import Context as Context
from muster.engine.declared import JsonMapping
from muster.engine.declared import MappingT
from muster.engine.declared import ResultT
from muster.engine.declared import SpecT
from muster.engine.declared import WorkloadFunction
from muster.engine.drive import Listener
from muster.engine.queue.base import OfferedRun
from muster.engine.queue.turns import DriveCaps
from muster.engine.schemas import JsonSchema
from muster.engine.schemas import SchemaLike
from muster.engine.steps import idempotency_key as idempotency_key
from muster.engine.steps import step as step
from muster.engine.workload import Preparation
from muster.engine.workload import workload as workload
from muster.git.branch_changes import CommittedTree
from muster.git.branch_changes import LineChanges
from muster.git.branch_changes import TreeHistory
from muster.git.merges import Merge
from muster.git.retention import Collected
from muster.git.saved_work import SavedWork
from muster.observability.options import LogFormat as LogFormat
from muster.observability.options import LogLevel as LogLevel
from muster.observability.options import LogOptions as LogOptions
from muster.pool.chains.chain import Chain
from muster.pool.chains.chain import ChainSpec
from muster.pool.chains.order import ChainOrder
from muster.pool.chains.progress import ChainProgress
from muster.pool.fan_out import FanOut
from muster.pool.metrics import PoolMetrics
from muster.pool.order import TaskOrder
from muster.pool.tasks import AssignedSlot
from muster.pool.tasks import SlotProfile
from muster.reporting.runs import RunReport
from muster.settings import Settings as Settings
from muster.settings import load_settings as load_settings
from muster.statistics.batches import BatchStats
from muster.store.base import AuditRecord
from muster.suites.compare.pairs import PairFilter
from muster.suites.compare.pairs import PairPage
from muster.suites.compare.runs import RunComparison
from muster.suites.evidence.keys import KeyFiles
from muster.suites.evidence.rescoring import Rescoring
from muster.suites.evidence.verification import ArchiveVerification
from muster.suites.journal import Subject
from muster.suites.reports.paging import CasePage
from muster.suites.reports.run import SuiteRun
from muster.suites.reports.summary import SuiteReport
from muster.suites.reports.trend import SuiteTrend
from muster.suites.reviews import ReviewedRun
from muster.verify.declaration.verification import Verification
from muster.verify.findings.finding import Severity
from muster.verify.reports.located import FindingPage
from muster.verify.reports.metrics import VerifyMetrics
from muster.verify.reports.summary import VerifyReport
from pathlib import Path
from types import TracebackType
from types import UnionType
from typing import Any
from typing import Generic
from typing import Self
from typing import Unpack
from typing import overload

class Muster:
    settings: Settings
    runs: Runs
    agents: Agents
    @property
    def batches(self) -> Batches:
        """Return what can be done with batches."""

    @property
    def pool(self) -> Pool:
        """Return what can be done with the pool and its tasks."""

    @property
    def project(self) -> Project:
        """Return what can be done with the files of the project."""

    @property
    def suites(self) -> Suites:
        """Return what can be done with suites."""

    @property
    def questions(self) -> Questions:
        """Return what decides about runs of single questions."""

    @property
    def verify(self) -> Verifications:
        """Return what can be done with verifications."""

    @property
    def councils(self) -> Councils:
        """Return what can be done with councils."""

    @property
    def battles(self) -> Battles:
        """Return what can be done with battles and scale tests."""

    @property
    def repairs(self) -> CodeRepairs:
        """Return what can be done about the findings of verifications by agents that change files."""

    @property
    def chains(self) -> Chains:
        """Return what can be done with chains."""

    @property
    def library(self) -> Library:
        """Return what requests to a server may name."""

    @property
    def gateway(self) -> Gateway:
        """Return what passes the requests of foreign programs on."""

    @property
    def store(self) -> StoreFile:
        """The store as a whole."""

    @property
    def server_budgets(self) -> ServerBudgets:
        """Return the budgets of everything that is started through servers."""

    @property
    def audit(self) -> UserActions:
        """Return what users of servers did."""

    @property
    def clock(self) -> Clock:
        """The clock that all of it goes by."""

    def acting_for(self, user: User) -> Self:
        """Return the same Muster as a user of a server may use it: with their runs, under their budget."""

    @property
    def hooks(self) -> RunHooks:
        """Return what tells the operator's hooks what became of runs."""

    @overload
    def ask(self, agent: str, prompt: str | Sequence[str | Media], *, schema: type[T], **options: Unpack[AskOptions]) -> Reply[T]: ...
    @overload
    def ask(self, agent: str, prompt: str | Sequence[str | Media], *, schema: UnionType, **options: Unpack[AskOptions]) -> Reply[object]: ...
    @overload
    def ask(self, agent: str, prompt: str | Sequence[str | Media], *, schema: JsonSchema | None=..., **options: Unpack[AskOptions]) -> Reply:
        """Ask one question, durably, and return the reply; Overdraft holds it when it exceeded a budget.

        With a `schema` the reply has `data` that fits it: JSON that fits a JSON Schema, or an instance of a dataclass,
        a TypedDict, a msgspec Struct or a Pydantic model, or of one of several types (`Refund | Refusal`). BadOutput
        holds a reply that does not. `messages` are the turns of the conversation before the prompt. The prompt may be a
        list of texts, `muster.image(…)` and `muster.document(…)`."""

    @overload
    def stream(self, agent: str, prompt: str | Sequence[str | Media], *, schema: type[T], **options: Unpack[AskOptions]) -> Iterator[str | Reply[T]]: ...
    @overload
    def stream(self, agent: str, prompt: str | Sequence[str | Media], *, schema: UnionType, **options: Unpack[AskOptions]) -> Iterator[str | Reply[object]]: ...
    @overload
    def stream(self, agent: str, prompt: str | Sequence[str | Media], *, schema: JsonSchema | None=..., **options: Unpack[AskOptions]) -> Iterator[str | Reply]:
        """Ask as `ask` does, and yield the text while it is written, and at the end the reply.

        An attempt that is tried again is told from its beginning; the reply has the whole text. Whoever stops listening
        does not stop the question: its reply is stored."""

    def start_question(self, question: Question, options: RunOptions, *, detach: bool=..., on_delta: Listener | None=...) -> RunHandle:
        """Start the run of a question; raises before anything is stored when nobody could answer it."""

    def submit_question(self, question: Question, options: RunOptions) -> RunHandle:
        """Store the run of a question for the workers; raises before that when nobody could answer it."""

    def outcome_of_question(self, run: Run) -> AskOutcome:
        """Return what became of the question of a run: its reply and whether that is a success."""

    def answer_of(self, run: RunId) -> Reply:
        """Return the reply to the question of a run."""

    @overload
    def start(self, workload: WorkloadFunction[SpecT, ResultT], spec: SpecT, **options: Unpack[StartOptions]) -> RunHandle[ResultT]: ...
    @overload
    def start(self, workload: WorkloadFunction[MappingT, ResultT], spec: JsonMapping, **options: Unpack[StartOptions]) -> RunHandle[ResultT]: ...
    @overload
    def start(self, workload: str, spec: object, **options: Unpack[StartOptions]) -> RunHandle:
        """Store a run and drive it in this process; with `detach` only until it waits for batches.

        A workload that is given as its function takes a spec of the type that it declares, and so is the result.
        With `resume` the newest run of that name goes on if there is one: it is resumed, followed if somebody drives
        it, or gives the result that it has. Raises Conflict when that does other work, or was canceled.
        With an origin it takes over what another run remembers, as far as the origin says."""

    def start_with(self, workload: str, spec: Json, options: RunOptions, *, detach: bool=..., on_delta: Listener | None=..., origin: Origin | None=...) -> RunHandle:
        """Start a run as `start` does, with options that were made before."""

    @overload
    def submit(self, workload: WorkloadFunction[SpecT, ResultT], spec: SpecT, **options: Unpack[SubmitOptions]) -> RunHandle[ResultT]: ...
    @overload
    def submit(self, workload: WorkloadFunction[MappingT, ResultT], spec: JsonMapping, **options: Unpack[SubmitOptions]) -> RunHandle[ResultT]: ...
    @overload
    def submit(self, workload: str, spec: object, **options: Unpack[SubmitOptions]) -> RunHandle:
        """Store a run for the workers; a workload and its spec are given as to `start`.

        With `resume` the newest run of that name is theirs to go on with if there is one, and else is stored once."""

    def resume(self, reference: str, *, budget_usd: str | float | None=..., on_delta: Listener | None=...) -> RunHandle:
        """Go on with a run: with its continuation if it has one, else with itself, else with one new run.

        All of them spend from the budget that the first was started with; `budget_usd` sets a new total. One that has
        completed gives its result; one that another process drives is refused."""

    def prepare_resume(self, reference: str, *, budget_usd: str | float | None=..., here: bool=...) -> Run:
        """Return the run that will be driven on resume, made if need be, or that has completed.

        Raises before anything changes."""

    def submit_resume(self, reference: str, *, budget_usd: str | float | None=...) -> Run:
        """Hand the run that goes on to the workers; one that has completed, or is driven, is returned as it is."""

    def log(self, event: str, *, level: str=..., **fields: Json) -> None:
        """Write a line to the log of this process, if it was opened with one."""

    def metrics(self, *, sse_watchers: int=...) -> str:
        """Return metrics in the text format of Prometheus: of the store, and of this process.

        What this process has done, attempts and tokens, is counted only when it was opened with `metrics=True`."""

    def costs(self, days: int=...) -> Costs:
        """Return what was spent in so many days (UTC), by day, agent and run, and how the budgets above runs stand."""

    def report(self, reference: str) -> AnyReport:
        """Sum up a suite run or a verification; `last` is the newest run that has a report."""

    def report_of(self, run: Run) -> AnyReport:
        """Sum up a suite run or a verification."""

    def succeeded(self, run: Run) -> bool:
        """Return whether what a completed run came to is a success by the rules of its workload."""

    def error_of(self, run: Run) -> Mapping[str, Json] | None:
        """Return why what a completed run came to is not a success by the rules of its workload; None when it is."""

    def output_of(self, run: Run) -> str:
        """Return what a run came to as a text: an answer if its kind has one, else its result as JSON."""

    def may_use_batches(self, run: Run) -> bool:
        """Return whether calls of a run may go into batches; a workload of the user's own may decide so at any time."""

    def worker(self, *, most: int=..., on_end: Callable[[Run], None]=..., on_error: Callable[[RunId, MusterError], None]=..., caps: DriveCaps | None=..., queues: Collection[str]=..., serving: bool=..., on_note: Callable[[str], None]=...) -> Worker:
        """Return a worker of this process; raises BadConfiguration when it could not know every workload.

        `caps` decide which runs may be driven beside each other. `queues` are "battles", "scale-tests" and "runs", for
        everything else. With REDIS_URL one that is `serving` drives only runs that no other worker takes; `on_note` is
        told so, and when the queue cannot be reached."""

    @property
    def driven_here(self) -> Collection[str] | None:
        """The queues whose runs this server drives itself, since no worker takes them; None without REDIS_URL."""

    def stop(self, error: StopRun, *, now: bool) -> None:
        """Stop every run that this process drives; `now` cuts calls, and waits for no lock of another process."""

    def close(self) -> None:
        """Close it; runs that were driven here can be resumed."""

    def __enter__(self) -> Muster: ...
    def __exit__(self, *error: object) -> None: ...

class Runs:
    def new_id(self) -> RunId:
        """Return the id of the run that the user starts next: the one that was chosen for it, or a new one."""

    def find(self, reference: str) -> Run:
        """Return the run that an id, a unique beginning of one, a name (the newest with it) or `last` stands for."""

    def newest_named(self, name: str, workload: str, spec: Json) -> Run | None:
        """Return the user's newest run of a name that is not a child; raises Conflict for one that does other work."""

    def media(self, reference: str, digest: str) -> MediaFile:
        """Return an image or a document that a run shows; raises NotFound for what is not there, or is damaged."""

    def newest(self, workloads: Collection[str]) -> Run | None:
        """Return the newest run of some workloads that is not a child."""

    def of_kind(self, kind: WorkKind, reference: str) -> Run:
        """Return a run of a kind by its reference; `last` is the newest of the kind that is not a child."""

    def last_of(self, kind: WorkKind) -> Run:
        """Return the newest run of a kind that is not a child."""

    def list(self, states: Iterable[RunState | str]=..., limit: int=...) -> Sequence[Run]:
        """Return the newest runs, of some states or of all."""

    def page(self, states: Iterable[RunState | str]=..., *, workloads: Iterable[str]=..., roots: bool=..., name: str | None=..., search: str=..., started_by: str | None=..., agent: str | None=..., since: float=..., until: float | None=..., after: str | None=..., limit: int=...) -> Sequence[Run]:
        """Return a page of runs, the newest first; `after` is the id of the last run of the page before.

        `name` is a whole name, `search` is looked for in ids, names, kinds of work and tags. `started_by` is a user,
        `agent` one that the run or a run under it has called; it was created from `since` on, and before `until`."""

    def sees(self, run: Run) -> bool:
        """Return whether the user may see a run."""

    def get(self, run: RunId) -> Run:
        """Return a run as it is stored now."""

    def details(self, reference: str, *, calls: int=..., events: int=...) -> RunDetails:
        """Return a run with its batches, and at most so many of its first calls and last events.

        Like calls, a task comes without the secrets that its agent said; `Task.reply` has its answer as it was said."""

    def batches_of(self, run: RunId, *, flex: bool=...) -> RunBatches:
        """Return the batches that hold calls of a run; with `flex` also what that tier saved."""

    def batches_under_way(self, run: RunId) -> Sequence[Batch]:
        """Return the batches that are not over and hold calls of a run or of its children."""

    def call(self, reference: str, key: str) -> CallDetails:
        """Return one call of a run in full."""

    def calls(self, reference: str, *, after: str | None=..., limit: int=...) -> Sequence[Entry]:
        """Return a page of the calls of a run, in their order; `after` is the last key of the page before."""

    def attempts(self, reference: str, *, after: str | None=..., limit: int=...) -> Sequence[CallDetails]:
        """Return a page of the calls of a run with their attempts, in their order."""

    def entry(self, run: RunId, key: str) -> Entry | None:
        """Return what a run remembers under a key; the reply to a request with a schema has its data."""

    def keys(self, run: RunId) -> Sequence[str]:
        """Return the keys under which a run has a result: of calls, steps, events, signals and children."""

    def events(self, run: RunId, after: int=..., limit: int=...) -> Sequence[Event]:
        """Return the events of a run after a number, at most so many."""

    def unknown(self) -> Sequence[Run]:
        """Return the runs for workers whose workload this process does not know."""

    def workers(self) -> int:
        """Return how many workers are alive."""

    def questions(self, reference: str) -> Sequence[OpenQuestion]:
        """Return what a run, also the one that it was resumed as, waits for people to answer; children's too."""

    def end_of_lineage(self, run: Run) -> Run:
        """Return the run that a run was last continued as; itself when it was not."""

    def send(self, reference: str, channel: str, payload: Any, *, sender: str=..., client_id: str | None=..., number: int | None=...) -> Signal:
        """Send a signal to a run, or to the run that it was resumed as; the same client id twice sends one.

        With a `number` it is refused when it is not the one of that number in its channel.
        A run that waits for it without a process is queued, and goes on as soon as somebody drives submitted runs."""

    def answer(self, reference: str, text: str, *, key: str | None=..., sender: str=..., client_id: str | None=...) -> AnswerOutcome:
        """Answer the only open question of a run, or the one under a key; the same client id twice answers once.

        An answer that does not fit the schema of the question is refused, and not stored."""

    def cancel(self, reference: str) -> Run:
        """Cancel a run and its batches; returns it when its driver has let go, or as it is after a few seconds."""

    def delete(self, references: Iterable[str]) -> Sequence[RunId]:
        """Delete runs with everything in them; none is deleted when one of them is not found."""

    def forget_ended(self, before: float, page: int=...) -> int:
        """Delete runs that ended before a time, with everything in them; return how many.

        Those that a baseline names, or that others still need, stay."""

    def export(self, reference: str, path: str | Path) -> tuple[Run, int]:
        """Write a run to a file; returns it with the number of its entries."""

    def import_(self, path: str | Path) -> Run:
        """Read a run from a file; it keeps its id."""

    def prepare_resume(self, reference: str, *, budget_usd: str | float | None=..., here: bool=...) -> Run:
        """Return the run that goes on: the end of the lineage, or its one continuation, made if it did not complete.

        One that has completed is the answer itself. If it is to be driven in this process (`here`), nobody else may
        drive it, and the batches that it waits for must be within reach. Raises before anything changes."""

    def submit_resume(self, reference: str, *, budget_usd: str | float | None=...) -> Run:
        """Hand the run that goes on to the workers; one that has completed, or is driven, is returned as it is."""

    def require_batches(self, run: RunId) -> None:
        """Raise BadConfiguration when a batch that a run waits for is out of reach: a key is missing or another's."""

    def queue(self, run: RunId) -> Run:
        """Hand a run that stands still to the workers."""

    def fork(self, reference: str, key: str, *, budget_usd: str | float | None=...) -> Run:
        """Make a run that takes over everything before a key and asks anew from there on."""

    def submit_fork(self, reference: str, key: str, *, budget_usd: str | float | None=...) -> Run:
        """Make such a run for the workers."""

    def replay(self, reference: str) -> Run:
        """Make a run that takes every outcome from another and makes no calls."""

    @property
    def user_budget(self) -> UserBudget | None:
        """The budget of the user, that runs which they start count under."""

    def requested(self) -> Run | None:
        """Return the run that the request of the user started before, under its key or with the id that it chose.

        Raises Conflict for another request under the key or the id."""

    def starts(self, seconds: float) -> Sequence[tuple[str, float]]:
        """Return the clients whose requests started runs in the last seconds, and when, the oldest first."""

    def start(self, workload: str, spec: Json, options: RunOptions | None=..., *, detach: bool=..., on_delta: Listener | None=..., origin: Origin | None=...) -> RunHandle:
        """Store a run and drive it in this process; with `detach` only until it waits for batches.

        With an origin it takes over what another run remembers, as far as the origin says."""

    def start_checked(self, workload: str, spec: Json, options: RunOptions | None=..., *, detach: bool=..., on_delta: Listener | None=..., origin: Origin | None=..., before: Preparation | None=...) -> RunHandle:
        """Store a run whose agents and files were checked, and drive it in this process.

        `before` does steps of the workload in advance; the workload must be able to do without."""

    def create(self, workload: str, spec: Json, options: RunOptions, run: RunId, budgets: Budgets) -> Run:
        """Store a run under budgets of its part; nothing drives it yet."""

    def submit(self, workload: str, spec: Json, options: RunOptions | None=..., *, origin: Origin | None=...) -> RunHandle:
        """Store a run for the workers; its keys are theirs to have, but its agents must be known."""

    def resume(self, reference: str, *, budget_usd: str | float | None=..., on_delta: Listener | None=...) -> RunHandle:
        """Go on with a run: with its continuation if it has one, else with itself, else with a new one.

        All of them spend from the budget that the first was started with; `budget_usd` sets a new total. One that has
        completed is not driven: its result is the answer. Raises Conflict for one that is driven elsewhere."""

    def follow_or_resume(self, run: Run, *, budget_usd: str | float | None=..., on_delta: Listener | None=...) -> RunHandle:
        """Go on with a run as `resume` does, or follow it if somebody drives it; a total that it has is no new one.

        Raises Conflict for one that was canceled, which only `resume` goes on with."""

    def follow_or_submit(self, run: Run, *, budget_usd: str | float | None=...) -> RunHandle:
        """Hand a run that goes on to the workers, or follow it if somebody drives it, as `follow_or_resume` does."""

    def go_on(self, run: Run, on_delta: Listener | None=..., *, shared: bool=...) -> RunHandle:
        """Drive a run that was prepared to go on; one that has completed is only looked at."""

    def drive(self, run: Run, on_delta: Listener | None=..., *, detach: bool=..., before: Preparation | None=..., shared: bool=...) -> RunHandle:
        """Drive a run in this process; one that is `shared` is followed when another one was faster to drive it."""

    def watch(self, run: Run, *, to_end: bool=...) -> RunHandle:
        """Follow a run that another process may drive; `to_end` also while it waits for a worker to go on with it."""

    def follow(self, reference: str, after: int=...) -> RunWatcher:
        """Return a watcher of a run, which many may share at the cost of one: every event after a number, then live.

        Unlike `watch` it goes on while the run stands still, and is told of text while it is being written."""

    @property
    def watchers(self) -> int:
        """Return how many watchers of `follow` this process has."""

    def close_watchers(self) -> None:
        """End every watcher of this process; whoever follows can go on in another one after its last event."""

    @property
    def calls_on_wire(self) -> int:
        """Return how many calls of runs driven here wait for their agents."""

    @property
    def only_wait(self) -> bool:
        """Return whether the runs that are driven here only wait: for a time, a signal, a batch or another attempt."""

    @property
    def unstored_answers(self) -> int:
        """Return how many answers of calls wait until they can be stored."""

    @property
    def agent_notes(self) -> Sequence[AgentNote]:
        """Return what is to be known of the agents of runs that were driven here."""

    @property
    def use_batches(self) -> bool:
        """Return whether runs driven here have parked calls, or taken up batches, since the store was opened."""

    @property
    def stopping(self) -> bool:
        """Return whether this process was told to stop; it drives nothing new then."""

    def stop(self, error: StopRun, *, now: bool) -> None:
        """Stop every run that this process drives; none is started or resumed here any more."""

    def close(self) -> None:
        """Let go of every run that is being driven here; they can be resumed.

        Calls on the wire are answered first; canceled meanwhile, as by a second Ctrl-C, it cuts them."""

    def options(self, *, budget_usd: str | float | None=..., name: str | None=..., tags: Iterable[str]=..., timeout: float | None=..., concurrency: int=..., dispatch: str | Dispatch=...) -> RunOptions:
        """Return checked options; without a budget, that of the settings."""

    def ordered(self, order: RunOrder, dispatch: Dispatch | None=...) -> RunOptions:
        """Return the options of a run that was ordered; without a budget, that of the settings."""


class RunHandle(Generic[DataT_co]):
    id: RunId
    def run(self) -> Run:
        """Return the run as it is stored now."""

    def events(self, after: int=...) -> Iterator[Event]:
        """Return the events after a number as they come, until the run is over or stands still.

        One that was submitted stands still for no longer than workers are away: its events end with the run."""

    def wait(self) -> Run:
        """Wait until the run is over or stands still."""

    def result(self) -> DataT_co:
        """Wait for the result; raises RunFailed when there is none, Overdraft with it when it exceeded a budget.

        The cause of RunFailed is what the workload raised here; of a run driven elsewhere it is what was recorded."""

    def cancel(self) -> None:
        """Ask for the run to be canceled and wait until it is."""


class RunWatcher:
    @property
    def over(self) -> bool:
        """Return whether nothing follows: the run is over, or this watcher was dropped or closed."""

    def take(self, seconds: float) -> Sequence[RunUpdate]:
        """Return all updates that are there; waits at most so long for the first, and returns none at the end."""

    def close(self) -> None:
        """Stop following; whoever waits for an update goes on without one."""

    def wake(self) -> None:
        """Let whoever waits look again."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> RunUpdate: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

class Questions:
    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise for an unknown agent, and for one without a key if it is asked here."""

    def error_of(self, run: Run) -> Mapping[str, Json] | None:
        """Return what is wrong with the reply; None for a good one."""

    def output(self, run: Run) -> str:
        """Return the text of the reply."""


class Suites:
    baselines: Baselines
    generations: Generations
    results: SuiteResults
    def plan(self, spec: SuiteSpec, dispatch: Dispatch=..., quoting: Quoting=..., *, keep: bool=...) -> SuitePlan:
        """Return what a run would do and cost; raises what would keep it from being done.

        With `keep` it holds the cases as well: a run that is started from the plan does not read its files again."""

    def exact(self, spec: SuiteSpec, *, most: int, on_count: Callable[[int], None]=...) -> Mapping[str, ExactCount]:
        """Return the tokens that go in with the first request of each case, by agent, as the providers count them.

        Counting is free; at most `most` requests are made for it, and `on_count` is told how many were."""

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise what would keep the run of a spec from being done; keys and prices only if it is driven `here`."""

    def source(self, *, replay: str | None=..., reuse: str | None=...) -> AnswerSource:
        """Return where known answers come from: the run, its exported file, or the recorded answers that are named."""

    def spec(self, choice: SuiteChoice, source: AnswerSource=...) -> SuiteSpec:
        """Return the spec of a choice; what was left open is as in the run that is replayed, reused or repeated."""

    def stored(self, spec: Json) -> Any:
        """Return a given spec as a run is stored with it: with the policy of a council that judges."""

    def start(self, spec: SuiteSpec, options: RunOptions | None=..., *, origin: Origin | None=..., detach: bool=..., plan: SuitePlan | None=...) -> RunHandle:
        """Start a suite run; from a plan that kept its cases, with these, whatever became of the files since.

        Without a plan one is made: what would keep the run from being done is raised before it is stored."""

    def submit(self, spec: SuiteSpec, options: RunOptions | None=..., *, origin: Origin | None=...) -> RunHandle:
        """Store a suite run for the workers; raises before that when an agent cannot be asked."""

    def start_stored(self, spec: Json, options: RunOptions, *, detach: bool=...) -> RunHandle:
        """Start the run of a spec as it is stored."""

    def rejudge(self, before: Run, changes: Mapping[str, Json], options: RunOptions | None=..., *, detach: bool=...) -> RunHandle:
        """Judge the answers of a suite run anew, with another judge or threshold; no agent is asked."""

    def find(self, reference: str) -> Run:
        """Return a suite run by its reference, or by a file it was exported to; a file is imported once."""

    def uses_batches(self, run: Run) -> bool:
        """Return whether the judge of a suite run is asked in batches, whatever its agents are."""

    def after_end(self, run: Run) -> None:
        """Sum a suite run up: its figures are kept for whoever looks at them."""

    def open(self, run: Run) -> SuiteRun:
        """Return a suite run with its cases, results and conversations; raises NotFound for one that had not begun."""

    def whole_report(self, run: Run) -> RunReport[SuiteReport]:
        """Return the summary of a suite run with what writes it in any format."""

    def report(self, run: Run) -> SuiteReport:
        """Return the summary of a suite run."""

    def compare(self, a: str, b: str, terms: ComparisonTerms=..., *, subject: str | None=..., on_note: Callable[[str], None]=...) -> RunComparison:
        """Compare two suite runs, paired by case and epoch; `on_note` hears how an ambiguous name was read."""

    def pairs(self, a: str, b: str, wanted: PairFilter=..., *, subject: str | None=..., after: str | None=..., limit: int=...) -> PairPage:
        """Return a page of the pairs of a comparison, what got worse first; `after` is `next` of the page before."""

    def trend(self, reference: str, limit: int=...) -> SuiteTrend:
        """Return what the newest suite runs of the same name as a run came to, the oldest of them first."""

    def before(self, reference: str) -> Run | None:
        """Return the completed run of the same suites and name before a suite run; None when there is none."""

    def review(self, reference: str, draft: ReviewDraft) -> AddedReview:
        """Add what a person thinks of one verdict of a suite run."""

    def reviews(self, reference: str) -> tuple[Run, ReviewedRun]:
        """Return a suite run with its reviews, and how far they agree with the judge."""

    def export_evidence(self, reference: str, output: str | Path, key: str | Path | None=...) -> Exported:
        """Write a signed archive of a suite run; without a key, the one in the home folder signs it."""

    def generate(self, wanted: Generation, options: RunOptions | None=...) -> RunHandle:
        """Start to have cases written by a model; raises before anything is stored when it cannot be asked."""

    def conclude_generation(self, wanted: Generation, run: Run) -> Generated:
        """Write the cases that a run generated to their file, and return them."""


class SuiteResults:
    def summary(self, reference: str) -> SuiteSummary:
        """Return the figures of a suite run."""

    def subjects(self, reference: str) -> tuple[Subject, ...]:
        """Return who was tested in a suite run."""

    def cases(self, reference: str, wanted: RowFilter=..., *, after: str | None=..., limit: int=...) -> CasePage:
        """Return a page of the cases of a suite run, each under each subject; `after` is `next` of the page before."""

    def case(self, reference: str, case: str, subject: str | None=...) -> WholeCase:
        """Return one case of a suite run with everything that was found and said."""


class Baselines:
    def set(self, name: str, reference: str) -> Run:
        """Let a name stand for a suite run; one from a file is imported, unless it is here already."""

    def list(self) -> Sequence[NamedRun]:
        """Return all baselines whose run is still there."""

    def remove(self, name: str) -> None:
        """Forget a name; the run stays."""


class Generations:
    def error_of(self, run: Run) -> Mapping[str, Json] | None:
        """Return why a run that generated cases is not a success; None when it is."""


class Evidence:
    def make_keys(self, path: str | Path | None=...) -> KeyFiles:
        """Make a key pair for signing, in the home folder if no file is named; existing files are not overwritten."""

    def verify(self, file: str | Path, public_key: str | Path | None=...) -> ArchiveVerification:
        """Return whether an archive is as it was signed; with a key, also whether it was signed with that one."""

    def rescore(self, file: str | Path, public_key: str | Path | None=..., *, allow_redacted: bool=...) -> Rescoring:
        """Verify an archive, score its replies again and compare; nobody is asked."""

    def export(self, suite: SuiteRun, output: str | Path, key: str | Path | None=...) -> Exported:
        """Write a signed archive of a suite run; without a key, the one in the home folder signs it."""


class Verifications:
    def prepare(self, folder: str | Path, selection: FileSelection, choice: VerifyChoice=...) -> AbstractContextManager[Prepared]:
        """Choose the files and the agents; what was staged for them is gone afterwards, unless a run was started."""

    def plan(self, spec: Verification, dispatch: Dispatch=..., quoting: Quoting=...) -> VerifyPlan:
        """Return what a verification would do and cost; raises what would keep it from being done."""

    def require_folders(self) -> None:
        """Refuse, before anything is spent, when the reports of waves or the log cannot be written."""

    def begin(self, request: VerifyRequest) -> StartedVerification:
        """Prepare, plan and start a verification; nothing is started when there is nothing to verify."""

    def start(self, prepared: Prepared, options: RunOptions | None=..., *, detach: bool=...) -> RunHandle:
        """Start a verification that was prepared; with `detach` it must have agents that are asked in batches."""

    def submit(self, prepared: Prepared, options: RunOptions | None=...) -> RunHandle:
        """Store a verification that was prepared for the workers."""

    def uses_batches(self, run: Run) -> bool:
        """Return whether any agent of a verification is asked in batches."""

    def require_resumable(self, run: Run) -> None:
        """Raise before anything is spent when reports could not be written."""

    def after_end(self, run: Run) -> None:
        """Write the reports and the log of a verification, and remove what was staged for it."""

    def require_batches(self, spec: Verification, dispatch: Dispatch) -> None:
        """Raise BadArgument when none of the agents of a verification is asked in batches."""

    def find(self, reference: str) -> Run:
        """Return a verification by its reference."""

    def report(self, run: Run) -> VerifyReport:
        """Return the summary of a verification."""

    def findings(self, reference: str, *, severity: Severity | None=..., rejected: bool=..., after: str | None=..., limit: int=...) -> FindingPage:
        """Return a page of what a verification found, the worst files first, with the code as it was verified."""

    def conclude(self, run: Run, repair: Repair | None=...) -> ConcludedVerification:
        """Sum up a verification, write its reports and log, and remove what was staged for one that is over.

        To do it twice changes nothing; raises NotFound for a run that had not begun. One that was made after a repair
        must have seen every file that the repair changed."""

    def leave_behind(self, run: Run, report: VerifyReport | None=...) -> LeftBehind:
        """Write the report of each wave and the lines of the log, from a summary that may be known already."""

    def tidy(self, run: Run) -> None:
        """Remove the staged contents of a run that is over; any other one may not have read its files yet."""

    def fix(self, run: Run) -> Fixed:
        """Make the changes that the findings of a run propose, as far as they can be made."""

    def repair(self, run: Run, request: VerifyRequest) -> Repair:
        """Make the changes that the findings of a run propose, and start to verify them with what is left of a budget.

        Without changes nothing is verified again; where that cannot be done, the first verification is what counts."""

    def metrics(self, since: float) -> VerifyMetrics:
        """Return figures over the verifications since then."""


class CodeRepairs:
    def begin(self, request: VerifyRequest) -> StartedVerification:
        """Start a verification whose findings are repaired; raises before anything is stored when that cannot be.

        Among the agents of the request, one of muster.toml that changes files repairs; the others verify. Without one
        nothing but a verification is started."""

    def agent_of(self, run: Run) -> str | None:
        """Return who repairs what a verification found; None when nobody does."""

    def repair(self, first: ConcludedVerification, on_task: OnTask=...) -> Repair:
        """Have the findings of a verification repaired, and start to verify that; goes on with what was begun before.

        Whatever keeps it from being repaired or verified again is told as the obstacle, and the first verification is
        what counts. Raises Interrupted when this process is told to stop."""

    def verify_part(self, first: ConcludedVerification, repair: Repair, whole: Run) -> StartedVerification | None:
        """Start to verify the changes to files with findings alone; None when no others were made, or it is decided.

        Whether findings are gone is decided by that: other files could decide what is found."""

    def concluded(self, repair: Repair, part: ConcludedVerification | None) -> Repair:
        """Return a repair that passed as a whole, with what the verification of its part says against it."""

    def tidy(self, verification: StartedVerification | None) -> None:
        """Remove the tree in which a verification took place, if it is over."""


class Pool:
    tasks: Tasks
    trees: TaskTrees
    monitor: PoolMonitor
    def require_resumable(self, run: Run) -> None:
        """Raise BadArgument: a task is retried, and needs a slot."""

    def output(self, run: Run) -> str:
        """Return the last answer of the agent of a task."""

    def driver(self, *, only: Collection[RunId] | None=..., on_end: OnEnd=..., on_error: OnError=..., on_delta: Listener | None=...) -> PoolDriver:
        """Return what drives the tasks of the pool in this process; `only` names the runs of some of them."""

    def run(self, spec: TaskSpec, *, on_delta: Listener | None=..., **terms: Unpack[TaskTerms]) -> Task:
        """Submit a task and wait until it is over or waits for a review; it is driven here if nobody drives the pool.

        Raises TimedOut when no slot was free for as long as `slot_assignment_timeout_secs` says; it is canceled then."""

    def run_ordered(self, order: TaskOrder, *, on_delta: Listener | None=...) -> Task:
        """Submit a task that was ordered, and wait as `run` does."""

    def cancel(self, reference: str) -> Task:
        """Cancel a task that has not ended otherwise. What it left in its working tree is kept on its branch."""

    def wait(self, task: Task, *, within: float=..., on_delta: Listener | None=...) -> Task:
        """Wait until a task is over or waits for a review; it is driven here if nobody drives the pool.

        Raises TimedOut, and cancels it, when no slot was free for it within some seconds."""

    def fan_out(self, wanted: FanOut, *, confirmed: bool=..., **terms: Unpack[TaskRunTerms]) -> Sequence[Task]:
        """Submit a task for each prompt and wait for all; results are in the order of the prompts, failed ones too.

        Raises before anything is stored when there are more than 50 and nobody confirmed that. A task that the budget
        of the pool does not pay for is not waited for; it stays pending and says why."""

    def metrics(self, *, since: float=..., until: float | None=..., tags: Sequence[str]=..., model: str | None=...) -> PoolMetrics:
        """Return figures over the tasks that were created in a time, have any of the tags, and used a model.

        Over all tasks, with what those have cost that are not among them: deleted ones, and those of other users."""

    def living_driver(self) -> Driver | None:
        """Return who drives the pool; None when nobody does."""

    @property
    def is_declared(self) -> bool:
        """Return whether the settings say anything of the pool; then a server drives it."""

    def may_be_driven(self) -> bool:
        """Return whether nobody drives the pool, and it was not drained."""

    def require_driver(self) -> None:
        """Raise Conflict when a task would wait without end: no process runs the pool, and no server would."""

    def set_budget(self, budget_usd: str | float) -> None:
        """Set the budget of all tasks since the pool was created."""

    def slots(self, *, name: str | None=..., role: str | None=..., state: str | None=...) -> Sequence[Slot]:
        """Return the slots: of a name, a role, a state."""

    def status(self) -> PoolStatus:
        """Return the pool at a glance."""

    def scale(self, number: str | int) -> Sequence[Slot]:
        """Change how many slots there are, to a number or by +N or -N; busy ones go when their task ends."""

    def drain(self, timeout: float=...) -> PoolStatus:
        """Refuse new work, wait until tasks at work are over or the time is, and stop all slots; pending tasks stay."""

    def context(self) -> Mapping[str, str]:
        """Return the texts that every slot is told."""

    def context_text(self, name: str) -> str:
        """Return a text that every slot is told."""

    def set_context(self, name: str, value: str) -> None:
        """Set a text that every slot is told from its next task on."""

    def delete_context(self, name: str) -> None:
        """Forget a text."""

    def send(self, slot: str, text: str, *, sender: str=..., client_id: str | None=...) -> Signal:
        """Send a message to a slot; its agent gets it once, during its task or in its next prompt."""

    def broadcast(self, text: str, *, sender: str=...) -> Sequence[str]:
        """Send a message to every slot but the sender and those that are stopped; return their names.

        All of them get it at the same moment; a slot that goes meanwhile is left out."""

    def unread(self, slot: str) -> Sequence[Signal]:
        """Return the messages that a slot has not read."""

    def read(self, slot: str) -> Sequence[Signal]:
        """Return the messages that a slot has not read and count them as read: no agent is given them any more."""


class Tasks:
    def get(self, reference: str) -> Task:
        """Return a task by its id, the beginning of one, its name, or `last`."""

    def of(self, run: Run) -> Task:
        """Return the task of a run, with what it has come to so far."""

    def list(self, states: Sequence[TaskState | str]=..., *, tag: str | None=..., slot: str | None=..., limit: int=...) -> Sequence[Task]:
        """Return the newest tasks: of some states, with a tag, given to a slot."""

    def unfinished(self) -> Sequence[Run]:
        """Return the runs of all tasks that are not over, the oldest first."""

    def counts(self) -> Mapping[TaskState, int]:
        """Return how many tasks are in each state."""

    def newest(self) -> Iterator[Run]:
        """Yield the newest run of every task, the newest first."""

    def slot(self, name: str) -> SlotProfile:
        """Return a slot by its name or id."""

    def most(self, spec: TaskSpec) -> Microdollars:
        """Return what a task may cost: its own budget, else the default of the pool, else nothing is known."""

    def most_of(self, run: Run) -> Microdollars:
        """Return what the task of a run may cost: like `most`, and a new total that a retry was given."""

    def find(self, reference: str) -> Run:
        """Return the newest run of a task."""

    def call_limit(self, agent: str, spec: TaskSpec, most: Microdollars) -> float | None:
        """Return what one call of a task may cost, in dollars, where its agent would reserve more than the task has.

        Else a call reserves what the agent says: a crash books that as uncertain, and the task must be able to go on."""

    def next_limit(self, agent: str, run: Run) -> float | None:
        """Return what the next call of a task may cost, in dollars, where its slot recorded another limit.

        It is less after calls were paid or became uncertain, if the agent keeps to it, and more after a retry has
        raised the budget. None: the recorded limit holds, or too little is left, and then the call is refused."""

    def require_next_call(self, run: Run, total: Microdollars | None=...) -> None:
        """Raise BudgetExhausted when a task has too little left for the call that is next, if one is."""

    def shortfall(self, run: Run) -> BudgetExhausted | None:
        """Return why a task that was interrupted cannot go on; money that a crash left uncertain fails no task."""

    def require_round(self, run: Run, total: Microdollars | None) -> None:
        """Raise BudgetExhausted when a task has too little left for another call of its agent."""

    def submit(self, spec: TaskSpec, *, started_by: RunId | None=..., **terms: Unpack[TaskTerms]) -> Task:
        """Store a task for whoever drives the pool; raises before that when it could never be done.

        `continues` names a completed task whose session of the agent it goes on with. `started_by` is the run of
        another task whose agent submits it: the budgets above that one hold for it too."""

    def submit_ordered(self, order: TaskOrder) -> Task:
        """Store a task that was ordered, for whoever drives the pool."""

    def approve(self, reference: str, *, sender: str=..., client_id: str | None=...) -> Task:
        """Approve the work of a task that waits for a review; it completes when the pool is driven."""

    def reject(self, reference: str, feedback: str, *, budget_usd: str | float | None=..., sender: str=..., client_id: str | None=...) -> Task:
        """Reject the work of a task that waits for a review; its next prompt has every feedback.

        `budget_usd` is a new total for its budget. Raises BudgetExhausted, and changes nothing, when too little of the
        budget is left for doing it again."""

    def allow(self, reference: str, *, tool: str | None=..., sender: str=..., client_id: str | None=...) -> Task:
        """Grant the tool that a task asks permission for, to the end of the task; it continues when the pool is driven.

        `tool` grants less or something else: for Claude Code a rule such as `Bash(git status:*)`."""

    def deny(self, reference: str, reason: str=..., *, sender: str=..., client_id: str | None=...) -> Task:
        """Deny what a task asks permission for; its agent is told the reason, and continues without it."""

    def cancel(self, reference: str) -> Task:
        """Cancel a task; one that was canceled stays so, one that ended otherwise is a conflict, as any other run."""

    def retry(self, reference: str, *, budget_usd: str | float | None=...) -> Task:
        """Have a task done again that failed, was canceled or lacks money; it keeps its id, and what it had done.

        `budget_usd` is a new total for its budget, with what it has spent so far."""

    def amend(self, reference: str, *, prompt: str | None=..., priority: int | None=...) -> Task:
        """Change the prompt or the priority of a task that has not started."""

    def claim(self, slot: str) -> Task | None:
        """Give the oldest pending task that fits to a slot; None when the slot is busy or there is no such task."""

    def require(self, spec: TaskSpec) -> None:
        """Raise what would keep a task from ever being done: no slot or agent for it, bad folders, unknown tasks."""

    def require_room(self, number: int=...) -> None:
        """Raise when so many more tasks cannot wait."""


class TaskTrees:
    def isolation_of(self, spec: TaskSpec, agent: str) -> Isolation:
        """Return where a task works: as it or the pool says, else in a worktree if its agent changes files in git."""

    def place(self, slot: AssignedSlot, run: RunId, spec: TaskSpec) -> AssignedSlot:
        """Return the slot with where its task works: the tree has the name of the task, so that a retry finds it."""

    def diff(self, reference: str, most_bytes: int=...) -> str:
        """Return what a task has changed in its tree as a patch without secrets, also what is uncommitted."""

    def saved(self, reference: str) -> SavedTaskWork:
        """Return what the branch of a task holds, with what was left uncommitted in its tree, and where that is."""

    def history(self, work: SavedWork) -> TreeHistory:
        """Return what the branch of a task ever changed."""

    def lines_changed(self, work: SavedWork) -> Mapping[str, LineChanges]:
        """Return the lines that the branch of a task adds and removes, by file."""

    def whole_of(self, work: SavedWork) -> CommittedTree:
        """Return the files that the branch of a task holds."""

    def part_of(self, work: SavedWork, paths: Collection[str], message: str) -> CommittedTree:
        """Return the files with which a task began, with what it made of some of them."""

    def check_out(self, reference: str, name: str, commit: str) -> Path:
        """Make a tree in which nobody has worked, prepared as that of a task was, and return where it is."""

    def remove(self, name: str) -> None:
        """Remove such a tree, if it is there."""

    def restore(self, reference: str, work: SavedWork, paths: Sequence[str], message: str) -> SavedWork:
        """Commit some files as they were when a task began to its branch, and return what the branch holds then."""

    def diff_of(self, work: SavedWork, paths: Sequence[str], most_bytes: int=...) -> str:
        """Return what a branch changes in some files as a patch without secrets."""

    def keep(self, run: Run) -> None:
        """Commit what a task that was stopped left uncommitted to its branch, and remember what the branch holds."""

    def commit_files(self, new: Sequence[str], message: str) -> str:
        """Return a commit, which no branch has, with the project's tracked files as they are now and some new ones."""

    def merge(self, reference: str, check: Sequence[str]=..., *, apply: bool=...) -> Merge:
        """Merge the branch of a task in a tree of its own, where the check must succeed; with `apply`, move the target.

        Raises MergeConflict with the files, what the check failed with, and Conflict when all of its work lies beside
        its branch. What is merged already is an empty merge."""

    def overlaps(self, reference: str | None=...) -> OverlapReport:
        """Return the files that unmerged branches of finished tasks have in common; of one task, those it shares."""

    def collect(self, *, dry_run: bool=...) -> Sequence[Collected]:
        """Remove the trees of tasks that hold nothing which is not elsewhere; say of each what was done and why."""


class PoolMonitor:
    def logs(self, reference: str, *, follow: bool=...) -> Iterator[LogRecord]:
        """Yield what happened to a task and what its agent wrote; with `follow` as it comes, until the task is over."""

    def watch(self, limit: int=...) -> Iterator[PoolSnapshot]:
        """Yield the pool as it is, and again whenever something changed; never ends by itself."""


class Chains:
    def load(self, path: str | Path) -> Chain:
        """Read a chain, or that of a folder; raises NotFound, or BadFile with everything that is wrong."""

    def spec(self, chain: Chain, given: Mapping[str, Json] | None=..., *, rows: Sequence[Mapping[str, Json]]=..., folder: str | Path=...) -> ChainSpec:
        """Return the spec of a run; raises BadArgument for inputs that the chain does not have, or lacks."""

    def ordered(self, order: ChainOrder, chain: Chain, given: Mapping[str, Json] | None=..., *, rows: Sequence[Mapping[str, Json]]=..., folder: str | Path=...) -> ChainSpec:
        """Return the spec of a run that was ordered; raises BadArgument as `spec` does."""

    def plan(self, spec: ChainSpec, dispatch: Dispatch=..., quoting: Quoting=...) -> ChainPlan:
        """Return what a chain would do and cost; raises what would keep it from being done.

        What steps give is not known before: it is counted with the most that their agents can write, and that of
        commands with 10,000 characters."""

    def start(self, spec: ChainSpec, options: RunOptions | None=..., *, on_delta: Listener | None=...) -> RunHandle:
        """Start a chain in this process; raises before anything is stored when a step could not be done."""

    def isolation_of(self, spec: ChainSpec) -> Isolation:
        """Return where a chain works: as it says, else in a worktree if agents of it change files in git."""

    def folder_note(self, spec: ChainSpec) -> str:
        """Return what is to be told of a chain whose agents change files of the user's; empty of any other."""

    def save(self, run: Run) -> SavedWork | None:
        """Commit what a chain that is at rest left in its working tree to its branch; None when it has no tree.

        What changed in the user's repository is kept too. A chain does both by itself when it completes or fails; after
        a cancel, a crash or a timeout it is done here."""

    def submit(self, spec: ChainSpec, options: RunOptions | None=...) -> RunHandle:
        """Store a chain for the workers."""

    def resume(self, reference: str, *, budget_usd: str | float | None=...) -> RunHandle:
        """Go on with a chain: steps that are done are not done again, a failed one is shown its error."""

    def drive(self, run: Run) -> RunHandle:
        """Drive a chain that is stored."""

    def find(self, reference: str) -> Run:
        """Return a chain by its reference; `last` is the newest chain."""

    def after_end(self, run: Run) -> None:
        """Commit what a chain left in its working tree."""

    def output(self, run: Run) -> str:
        """Return the output of the last step that has one."""

    def list(self, limit: int=...) -> Sequence[Run]:
        """Return the newest chains, without those that are parts of others."""

    def size(self, run: Run) -> ChainSize:
        """Return how many steps a chain has, and how many rows of inputs."""

    def progress(self, reference: str) -> ChainProgress:
        """Return how far a chain is, whoever drives it."""

    def progress_of(self, run: Run) -> ChainProgress:
        """Return how far a chain is."""


class Councils:
    def load(self, path: str | Path) -> CouncilSpec:
        """Read a policy, or that of a folder; its question is still to be put, and more agents may join."""

    def spec(self, question: str, agents: Iterable[str | CouncilMember]=..., *, policy: CouncilSpec | None=..., files: Iterable[str | Path]=..., **chosen: Any) -> CouncilSpec:
        """Return the spec of a council; what is given counts before what the policy says.

        Agents come after those of the policy. `chosen` are fields of a CouncilSpec (rounds, effort, …); None leaves one
        as it is. Raises BadArgument with everything that is wrong."""

    def ordered(self, order: CouncilOrder) -> CouncilSpec:
        """Return the spec of a council that was ordered; raises BadArgument with everything that is wrong."""

    def plan(self, spec: CouncilSpec, dispatch: Dispatch=..., quoting: Quoting=...) -> CouncilPlan:
        """Return what a council would ask at most; raises for agents that cannot be asked."""

    def start(self, spec: CouncilSpec, options: RunOptions | None=..., *, detach: bool=..., on_delta: Listener | None=...) -> RunHandle:
        """Start a council in this process; raises before anything is stored when an agent cannot be asked.

        With `detach` it is driven only until it waits for its batches."""

    def submit(self, spec: CouncilSpec, options: RunOptions | None=...) -> RunHandle:
        """Store a council for the workers."""

    def find(self, reference: str) -> Run:
        """Return a council by its reference; `last` is the newest council."""

    def inject(self, reference: str, text: str, *, client_id: str | None=...) -> Signal:
        """Tell all members something; they are told in every phase that begins from now on."""

    def stop(self, reference: str, *, client_id: str | None=...) -> Signal:
        """End a council with the best proposal so far; calls that are at work are waited for."""

    def trace(self, reference: str) -> CouncilReport:
        """Return what happened in a council round by round, also while it is held."""

    def trace_of(self, run: Run) -> CouncilReport:
        """Return what happened in a council round by round."""

    def people_to_ask(self, run: Run) -> tuple[str, ...]:
        """Return the members of a council that are persons, until the council has ended; none for any other run."""

    def require_no_people_to_ask(self, run: Run) -> None:
        """Raise Conflict while members that are persons may be asked: a report says whose proposals they weigh."""

    def report(self, run: Run) -> RunReport[CouncilReport]:
        """Return a council summed up, to be written in any format."""

    def result(self, reference: str) -> CouncilOutcome:
        """Return what a council came to; raises BadArgument for one that has no result."""

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise what would keep a stored spec from being held; elsewhere the keys of this process do not count."""

    def output(self, run: Run) -> str:
        """Return the answer of a council: what was written from its proposals, or the best of them."""

    def rounds_of(self, run: Run) -> int:
        """Return how many rounds a council may hold."""


class Battles:
    @property
    def scales(self) -> Scales:
        """Return what can be done with scale tests: many battles that measure an agent or a prompt."""

    def spec(self, agent: str, counterpart: str | None=..., *, goal: str=..., judge: str | None=..., confirm_judge: str | None=..., validators: Iterable[ReplyValidator | Mapping[str, Json]]=..., models: Collection[str] | None=..., files: Iterable[str | Path | Media]=..., **more: Any) -> BattleSpec:
        """Return the spec of a battle; who is not named is taken from the settings. Raises BadArgument with all flaws.

        `more` are other fields of a BattleSpec; None leaves one as it is. `models` are those that may judge without
        being named, where only some are allowed. `files` are images and documents that belong to the first message."""

    def ordered(self, order: BattleOrder, *, models: Collection[str] | None=...) -> BattleSpec:
        """Return the spec of a battle that was ordered; raises BadArgument with all flaws."""

    def ordered_scale(self, order: ScaleOrder, *, models: Collection[str] | None=...) -> ScaleSpec:
        """Return the spec of a scale test that was ordered; raises BadArgument with all flaws."""

    def check_validators(self, validators: Iterable[Mapping[str, Json]]) -> None:
        """Raise BadArgument for validators with flaws, found in a thread: large patterns and schemas take a while.

        What was found is remembered, so that a spec with the same validators is made at once."""

    def check(self, spec: BattleSpec, dispatch: Dispatch, quoting: Quoting=...) -> None:
        """Raise what would keep a battle from being played: an agent, a key or a price that is not there."""

    def start(self, spec: BattleSpec, options: RunOptions | None=..., *, detach: bool=..., on_delta: Listener | None=...) -> RunHandle:
        """Start a battle in this process; raises before anything is stored when an agent cannot be asked."""

    def submit(self, spec: BattleSpec, options: RunOptions | None=...) -> RunHandle:
        """Store a battle for the workers."""

    def find(self, reference: str) -> Run:
        """Return a battle by its reference, also one of a scale test; `last` is the newest that is not of one."""

    def status(self, reference: str) -> BattleReport:
        """Return how a battle stands: its messages, decisions, usage and cost, from the store."""

    def standing(self, run: Run, update: Event | RunEnd) -> Standing | None:
        """Return how a battle or scale test stood after an update that tells of it; None for any other update.

        From the events up to that one, so that it is the same whenever it is asked for."""

    def messages(self, reference: str, since_seq: int=..., limit: int=...) -> MessagePage:
        """Return the messages after a number, at most so many."""

    def decisions(self, reference: str) -> tuple[BattleDecision, ...]:
        """Return what was decided after each reply, in order."""

    def cancel(self, reference: str) -> Run:
        """Cancel a battle; what was said stays."""

    def report(self, run: Run) -> RunReport[BattleReport]:
        """Return a battle summed up, to be written in any format."""

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise what would keep a stored spec from being played; elsewhere the keys of this process do not count."""

    def limit_of(self, run: Run) -> int:
        """Return how many replies the agent under test may give."""


class Scales:
    def goals(self, path: str | Path) -> tuple[BattleGoal, ...]:
        """Read a file of goals and personas, YAML or JSON lines; raises BadFile with the line of what is wrong."""

    def spec(self, battle: BattleSpec, *, runs: int | None=..., concurrency: int | None=..., agents: Iterable[str]=..., prompts: Iterable[PromptVariant]=..., goals: Iterable[BattleGoal]=..., min_goal_rate: float | None=..., reviser: str | None=..., try_revised: bool=...) -> ScaleSpec:
        """Return the spec of a scale test; raises BadArgument with everything that is wrong.

        Left out, `runs` is one for each agent, prompt and goal, or as many as are allowed when there is only one of
        each; the reviser is who confirms goals. An empty `reviser` asks nobody for a better prompt."""

    def check(self, spec: ScaleSpec, dispatch: Dispatch, quoting: Quoting=...) -> None:
        """Raise what would keep a scale test from being played: a limit, an agent, a key or a price."""

    def start(self, spec: ScaleSpec, options: RunOptions | None=..., *, detach: bool=..., on_delta: Listener | None=...) -> RunHandle:
        """Start a scale test in this process; raises before anything is stored when an agent cannot be asked."""

    def submit(self, spec: ScaleSpec, options: RunOptions | None=...) -> RunHandle:
        """Store a scale test for the workers."""

    def find(self, reference: str) -> Run:
        """Return a scale test by its reference; `last` is the newest."""

    def status(self, reference: str) -> ScaleReport:
        """Return how a scale test stands, from the store."""

    def result(self, reference: str) -> ScaleReport:
        """Return what a scale test came to; raises Conflict before it has ended."""

    def conversations(self, reference: str) -> Mapping[int, BattleReport]:
        """Return the battles of a scale test that have begun, by their numbers."""

    def cancel(self, reference: str) -> Run:
        """Cancel a scale test with all its battles; what was said stays."""

    def report(self, run: Run) -> RunReport[ScaleReport]:
        """Return a scale test summed up, to be written in any format."""

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise what would keep a stored spec from being played; elsewhere the keys of this process do not count."""


class Batches:
    def find(self, reference: str) -> Batch:
        """Return the batch that an id, a unique beginning of one, the provider's id or `last` stands for."""

    def list(self, states: Sequence[BatchState | str]=..., limit: int=..., *, after: str | None=...) -> Sequence[Batch]:
        """Return the newest batches; `after` is the id of the last batch of the page before."""

    def get(self, batch: BatchId) -> Batch:
        """Read a batch anew."""

    def fetch(self, batch: Batch) -> Batch:
        """Wait for a batch and bring its results into the store; one that is over stays as it is.

        It is polled at once, whichever process waited for it before."""

    def cancel(self, batch: Batch) -> Batch:
        """Have the provider stop a batch, and bring what it produced into the store."""

    def reconcile(self, *, resubmit: bool=..., on_look: OnLook=...) -> Sequence[Reconciled]:
        """Find out what became of batches whose create is unresolved, and of those that cannot be read any more.

        If told to, what cannot be found or read is given up. `on_look` hears of each batch when that begins."""

    def stats(self, since: float) -> BatchStats:
        """Return the figures of the batches that were planned since then."""

    def under_way(self) -> Sequence[Batch]:
        """Return the batches that are not over."""

    def stalled(self) -> Sequence[Batch]:
        """Return the batches that do not get on, the oldest first; the note of each says why."""

    def unclear(self) -> int:
        """Return how many batches there are for `reconcile` to find out about."""

    def awaited_here(self) -> Sequence[Batch]:
        """Return the batches under way with calls of runs that this process drives, children too."""

    def runs(self, batch: BatchId) -> Mapping[RunId, int]:
        """Return how many calls of which runs a batch holds."""

    def lines(self, reference: str) -> Iterator[bytes]:
        """Return the results of a batch as the provider wrote them, in pieces."""

    def resumable(self, batch: BatchId) -> Sequence[RunId]:
        """Return the runs with calls in a batch that stand still; of a child, the run that it belongs to."""

    def watch(self, batch: Batch) -> Iterator[Batch]:
        """Return a batch repeatedly until it has ended; it is fetched here when no other process drives a run of it."""


class Agents:
    def require(self, name: str, request: Request | None=..., dispatch: Dispatch=...) -> None:
        """Raise what would keep an agent from answering a request: no such agent, no key, no price."""

    def list(self) -> Sequence[str]:
        """Return the names of the agents in muster.toml or given to `open`; `provider/model` names need neither."""

    def has_batches(self, name: str) -> bool:
        """Return whether an agent can be asked in batches; one that answers on this machine cannot."""

    def models(self, provider: str) -> Sequence[OfferedModel]:
        """Return the models that a provider offers, or the server of a declared model; asking costs nothing."""

    def is_person(self, name: str) -> bool:
        """Return whether an agent is a person, who is always asked live and whose answer is waited for."""

    def has_people(self) -> bool:
        """Return whether muster.toml declares any agent that is a person."""


class StoreFile:
    def info(self) -> Mapping[str, Any]:
        """Return where the store is, how large, whether it is sound, and how many batches are under way."""

    def vacuum(self) -> None:
        """Return the free space of the store to the disk; refused while runs are in progress."""

    def sweep(self) -> None:
        """Mark the runs of dead drivers as interrupted."""

    def shortage(self) -> str | None:
        """Return why the store cannot be written to; None when it can."""

    def require_writable(self, seconds: float=...) -> None:
        """Raise StoreFailed when nothing can be written within some seconds; whoever asks meanwhile asks the same."""

    def copy_to(self, target: str | Path) -> StoreCopy:
        """Copy the whole store into an empty one: a folder, or the address of a PostgreSQL database."""

    def stop_waiting(self) -> None:
        """Wait no longer for a lock that another process holds."""


class Project:
    @property
    def settings(self) -> Settings:
        """Return the settings of the project; raises BadConfiguration when they are not valid."""

    @property
    def evidence(self) -> Evidence:
        """Return what can be done with signed archives."""

    def validate(self, paths: Sequence[str | Path]) -> Validated:
        """Check suites, verification agents, chains and folders with them; raises BadArgument for none at all."""

    def lint(self, paths: Sequence[str | Path]) -> Linted:
        """Find weak spots of suites; raises BadArgument for none at all."""

    def schema(self, what: str) -> Mapping[str, Any]:
        """Return the JSON Schema of a file: `suite`, `verify`, `chain`, `council`, or `toml` for muster.toml.

        Also that of the spec of a workload of the project, by its name."""

    def create(self, name: str, kind: str=..., *, below: str | Path=...) -> CreatedFolder:
        """Make a folder with a small suite, a chain, a council, or the shipped verification agents (`verify`)."""

    def install_hook(self, folder: str | Path=..., *, force: bool=...) -> Installed:
        """Install a git hook that verifies what is staged before each commit; `force` replaces another one."""

    def allow_secret(self, place: str, *, folder: str | Path=..., agents_file: str | Path | None=...) -> Allowed:
        """Add an exception for the secrets at FILE:LINE to verify.yaml."""

    def report_of_file(self, path: str | Path) -> AbstractContextManager[AnyReport]:
        """Sum up the run of an exported file; the store of the project is not opened."""


class Library:
    @property
    def agents(self) -> Sequence[str]:
        """The names of agents that requests may name."""

    def offers(self) -> Sequence[OfferedAgent]:
        """Return the agents that requests may name, with what they are."""

    @property
    def people(self) -> frozenset[str]:
        """The names of agents that are persons: a run waits for their answers."""

    def require_agents(self, named: Iterable[tuple[str, str | None]]) -> None:
        """Raise BadArgument for all agents that requests may not name, by the fields that do; None is the usual one."""

    def flaws(self, named: Iterable[tuple[FieldForm, str, str]]) -> Sequence[FieldFlaw]:
        """Return what is wrong with names of a request, each after what it names and the path of its field."""

    def items(self) -> Sequence[LibraryItem]:
        """Return what the library holds; raises BadConfiguration for two files of one kind and name."""

    def find(self, kind: LibraryKind, name: str, field: str) -> Path:
        """Return the file of a name; raises BadArgument for a name that the library does not have."""

    def find_all(self, kind: LibraryKind, named: Sequence[tuple[str, str]]) -> Sequence[Path]:
        """Return the files of names; raises BadArgument for all that the library does not have, by their fields."""

    def judge(self, name: str | None) -> str | None:
        """Return a judge as a suite takes it: an agent that requests may name, or a council of the library."""


class RunHooks:
    @property
    def is_declared(self) -> bool:
        """Return whether there is any hook."""

    def prepare(self) -> None:
        """Have runs noted that end from now on, if there is a hook to be told; without one forget what was noted."""

    def wait(self, seconds: float) -> None:
        """Wait until something may have ended since it was looked what is to be told."""

    def tell_due(self, except_for: Collection[RunId], on_note: Callable[[str], None]) -> int:
        """Tell hooks of everything that is to be told, but of some runs; returns how many runs that were."""

    def tell(self, run: Run) -> None:
        """Tell the hook that a run has ended, or that it waits for a review or an answer; others are not told.

        Raises an error of the tree when the command fails or the webhook does not take it."""


class ServerBudgets:
    def level(self, server: str) -> str:
        """Return the level of the ledger that runs started through a kind of server count under."""

    def set(self, server: str, budget_usd: str | float) -> None:
        """Set what all runs that are ever started through a kind of server may cost in total."""

    def funds(self, server: str) -> ServerFunds:
        """Return what is spent and left."""


class UserActions:
    def action(self, name: str, subject: str, *, client: str, request_id: str) -> AbstractContextManager[AuditedAction]:
        """Do something inside, which is written down before and completed with what came of it.

        After a crash in between, the record is there with an unknown outcome. What is refused before anything is
        done leaves none. Raises StoreFailed when the store does not take the record: then nothing is done."""

    def list(self, *, before: int | None=..., limit: int=...) -> Sequence[AuditRecord]:
        """Return what was done, the newest first; `before` is the number of the last record of the page before."""


class Worker:
    def serve(self, *, until_idle: bool=...) -> None:
        """Take runs until closed; with `until_idle` only until nothing is left to take."""

    def close(self) -> None:
        """Take nothing new."""

    @property
    def driving(self) -> Collection[RunId]:
        """The runs that were taken and are not over yet, or not concluded."""

    def offer(self, run_id: RunId) -> OfferedRun:
        """Drive a run if it is due, as soon as there is a place; return at once when somebody else has it."""


def open(store: str | Path | None=..., *, project: str | Path | None=..., agents: Mapping[str, GivenAgent] | None=..., settings: Settings | None=..., allow_unpriced: bool=..., keyless: bool=..., clock: Clock | None=..., policy: RetryPolicy | None=..., timeouts: Timeouts | None=..., batch_timeouts: Timeouts | None=..., patience: Patience | None=..., on_wait: Callable[[str], None] | None=..., create: bool=..., start_secs: float=..., observers: Sequence[Observer]=..., log: LogOptions | None=..., metrics: bool=..., tracer_provider: object | None=...) -> Muster:
    """Open a project with its store; `with` or `close` closes it again.

    Without arguments it is the project of the working folder, as for commands. `project` is the folder of another, with
    its muster.toml and store. `store` moves the store alone: to a folder, or to the address of a PostgreSQL database.
    `settings` say both. `agents` are those of this process, by name, before those of muster.toml: an async function
    that takes a Request, an object of the protocol `Agent`, or what a section `[agents.NAME]` has, as a mapping.

    Without `create` a store that is not there is read as an empty one, and is not made.
    `on_wait` is told when a write has waited for some seconds because another process keeps the store locked, and when
    a database server is waited for that takes no connections yet, for at most `start_secs`.
    With `metrics` attempts, tokens and times are counted for `Muster.metrics`; a `tracer_provider` of OpenTelemetry
    turns traces on; `observers` are told what the engine does."""

def doctor(home: str | Path | None=...) -> DoctorReport: ...
