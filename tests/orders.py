"""Every order, by the feature that declares it: what is tested of one is tested of all."""

from muster.app.kinds.question_order import QuestionOrder
from muster.battles.order import BattleOrder, ScaleOrder
from muster.councils.order import CouncilOrder
from muster.pool.chains.order import ChainOrder
from muster.pool.order import FanOutOrder, TaskOrder
from muster.suites.order import GenerationOrder, RejudgeOrder, SuiteOrder
from muster.verify.order import VerificationOrder

ORDERS: tuple[type, ...] = (
    BattleOrder,
    ScaleOrder,
    CouncilOrder,
    QuestionOrder,
    ChainOrder,
    TaskOrder,
    FanOutOrder,
    VerificationOrder,
    SuiteOrder,
    RejudgeOrder,
    GenerationOrder,
)
FORMS = {  # by the name of the form in the address of the page
    "battle": BattleOrder,
    "scale": ScaleOrder,
    "council": CouncilOrder,
    "question": QuestionOrder,
    "chain": ChainOrder,
    "task": TaskOrder,
    "verification": VerificationOrder,
    "suite": SuiteOrder,
}
