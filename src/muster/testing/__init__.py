"""What tests are made of, here and in the projects of users.

agent = FakeAgent({"(?i)parcel": "delivery"}, otherwise="other")
kill_everywhere(triage, {"mail": ["Where is my parcel?"]}, agents=agents)
"""

from muster.testing.clock import FakeClock
from muster.testing.crashes import CrashReport, kill_everywhere
from muster.testing.fake_agent import FakeAgent
from muster.testing.fixture import MusterTest
from muster.testing.folders import memory_folder
from muster.testing.laws import assert_laws

__all__ = ["CrashReport", "FakeAgent", "FakeClock", "MusterTest", "assert_laws", "kill_everywhere", "memory_folder"]
