"""How runs end, by their workload."""

from collections.abc import Mapping

from muster.cli.ending import Ending
from muster.cli.run_ending import SuiteEnding
from muster.cli.verify_ending import WavesEnding

ENDINGS: Mapping[str, Ending] = {"suite": SuiteEnding(), "waves": WavesEnding()}
