"""The error tree, split by what the caller does next.

MusterError
├── TryLater                the same request may succeed later
│   ├── RateLimited         too fast or too many (429)
│   ├── Overloaded          the provider is full (503, 529)
│   ├── TierFull            the tier of service has no place (429)
│   ├── ProviderFault       the provider broke and says so (other 5xx)
│   ├── Unreachable         the request never left: refused, no such host, no TLS
│   ├── OutcomeUnknown      it left and no whole answer came: cut, stalled, garbled
│   │   ├── OutOfTime       the same, because its time was over
│   │   └── Undecodable     it came in an encoding that cannot be decoded; not tried again
│   ├── Expired             its batch ran out of time before it was processed
│   └── Respelled           a field has another name there, and is sent under it from now on
├── CallFailed              give up this call; the run may go on
│   ├── InvalidRequest      the provider refuses the request (400, 413, 422)
│   ├── UnknownModel        the provider has no such model (404)
│   ├── Untrusted           the certificate of the server is not valid; nothing was sent
│   ├── RetriesExhausted    every attempt failed; holds the last error
│   ├── BatchCanceled       its batch was canceled before it was processed
│   ├── ToolTurnsExceeded   the agent called tools more often than it may
│   ├── AgentFailed         a program or CLI agent did not do it; holds what it wrote to standard error
│   │   ├── NotStarted      the program could not be started
│   │   ├── BadExit         it exited with an error, or was killed
│   │   ├── BadOutput       it answered, but not in the shape that was asked for
│   │   ├── TimedOut        its time was over
│   │   ├── Stalled         it said nothing for too long
│   │   └── PermissionAsked it wanted a person's permission
│   └── RecordedFailure     a failure read back from the journal
├── StopRun                 the whole run must stop
│   ├── AuthRefused         the key is missing, wrong or not allowed (401, 403)
│   ├── BudgetExhausted     what is spent plus the most this call can cost is over the cap
│   ├── RunCanceled         somebody canceled it
│   ├── RunTimedOut         its time is over
│   ├── Interrupted         this process was told to stop; the run can be resumed
│   ├── LeftWaiting         its calls wait in batches; any process can go on with it later
│   │   ├── AwaitsSignal    it waits for signals only; whoever drives submitted runs goes on with it
│   │   ├── BatchOverdue    a batch was waited for long enough
│   │   ├── BatchOpen       nobody can say yet whether a batch was created
│   │   └── BatchLost       a batch or its results cannot be read from the provider
│   ├── LeaseLost           another driver has taken the run
│   └── StoreFailed         the store cannot be read or written
│       └── StoreAway       its server does not answer; it may do so later
│           └── StoreUnreachable  nobody takes connections there, or not yet
├── FixSpec                 the person must change something first
│   ├── BadArgument         a value given on the command line or to a function
│   │   └── ConflictingArguments two of them that cannot be used together
│   ├── BadFile             a file that does not parse or does not fit, with its place
│   ├── BadConfiguration    keys, agents, prices, workloads
│   ├── KeyReused           one key was used for two different requests
│   └── ReplayMiss          a replay asked for something that was never recorded
├── ChildFailed             a child run did not complete; its parent may go on
├── BattleFailed            a side of a battle said nothing; it can be resumed
├── CouncilFailed           a council has no result: too few of its members answered; it can be resumed
├── ToolError               a function that an agent uses as a tool could not do it; the agent is told why
├── StepFailed              a step of a chain failed, and all its tries with it; the chain can be resumed from it
├── RunFailed               a run did not complete; holds why
├── Overdraft               a run completed and cost more than its budget; what it answered is kept
├── KeyTaken                the journal has an entry under this key already
├── Conflict                somebody else is at it, or it is not in a state for this
│   ├── AlreadyContinued    the run has a continuation; go on from there
│   ├── NameTaken           a run of that name is there already; go on with it
│   └── MergeConflict       two branches changed the same lines; holds the files
├── AccessDenied            the user may not do this
├── LimitReached            a limit of the service is reached; later it may be possible
├── QueueFailed             the server of the queue cannot be reached; the store has everything that it had
└── NotFound                no such run, key, file
"""

from muster.domain.errors.base import (
    AccessDenied,
    AlreadyContinued,
    BadArgument,
    BadConfiguration,
    BadFile,
    Conflict,
    ConflictingArguments,
    ErrorCollector,
    FixSpec,
    KeyReused,
    KeyTaken,
    LimitReached,
    MergeConflict,
    MusterError,
    NameTaken,
    NotFound,
    Paid,
    QueueFailed,
    ReplayMiss,
    did_you_mean,
)
from muster.domain.errors.calls import (
    CHECK_NETWORK,
    AgentFailed,
    AuthRefused,
    BadExit,
    BadOutput,
    BatchCanceled,
    CallFailed,
    Expired,
    InvalidRequest,
    NotStarted,
    OutcomeUnknown,
    OutOfTime,
    Overloaded,
    PermissionAsked,
    ProviderFault,
    RateLimited,
    RecordedFailure,
    Respelled,
    RetriesExhausted,
    Stalled,
    TierFull,
    TimedOut,
    ToolTurnsExceeded,
    TryLater,
    Undecodable,
    UnknownModel,
    Unreachable,
    Untrusted,
    WireError,
)
from muster.domain.errors.runs import (
    AgentUnusable,
    AwaitsSignal,
    BatchLost,
    BatchOpen,
    BatchOverdue,
    BattleFailed,
    BudgetExhausted,
    ChildFailed,
    CouncilFailed,
    Interrupted,
    LeaseLost,
    LeftWaiting,
    Overdraft,
    RunCanceled,
    RunFailed,
    RunTimedOut,
    StepFailed,
    StopRun,
    StoreAway,
    StoreFailed,
    StoreUnreachable,
    ToolError,
    after_run,
    exit_code_of,
    needs_higher_budget,
    resume_command,
    state_verb,
    store_closed,
)

__all__ = [
    "CHECK_NETWORK",
    "AccessDenied",
    "AgentFailed",
    "AgentUnusable",
    "AlreadyContinued",
    "AuthRefused",
    "AwaitsSignal",
    "BadArgument",
    "BadConfiguration",
    "BadExit",
    "BadFile",
    "BadOutput",
    "BatchCanceled",
    "BatchLost",
    "BatchOpen",
    "BatchOverdue",
    "BattleFailed",
    "BudgetExhausted",
    "CallFailed",
    "ChildFailed",
    "Conflict",
    "ConflictingArguments",
    "CouncilFailed",
    "ErrorCollector",
    "Expired",
    "FixSpec",
    "Interrupted",
    "InvalidRequest",
    "KeyReused",
    "KeyTaken",
    "LeaseLost",
    "LeftWaiting",
    "LimitReached",
    "MergeConflict",
    "MusterError",
    "NameTaken",
    "NotFound",
    "NotStarted",
    "OutOfTime",
    "OutcomeUnknown",
    "Overdraft",
    "Overloaded",
    "Paid",
    "PermissionAsked",
    "ProviderFault",
    "QueueFailed",
    "RateLimited",
    "RecordedFailure",
    "ReplayMiss",
    "Respelled",
    "RetriesExhausted",
    "RunCanceled",
    "RunFailed",
    "RunTimedOut",
    "Stalled",
    "StepFailed",
    "StopRun",
    "StoreAway",
    "StoreFailed",
    "StoreUnreachable",
    "TierFull",
    "TimedOut",
    "ToolError",
    "ToolTurnsExceeded",
    "TryLater",
    "Undecodable",
    "UnknownModel",
    "Unreachable",
    "Untrusted",
    "WireError",
    "after_run",
    "did_you_mean",
    "exit_code_of",
    "needs_higher_budget",
    "resume_command",
    "state_verb",
    "store_closed",
]
