"""What the tests of checkers share: what a checker's findings come to when they are counted."""

from muster.verify.declaration.verification import Kind, Verifier
from muster.verify.findings.answers import FindingsAnswer
from muster.verify.findings.assessment import assess, conclude
from muster.verify.findings.finding import Examined


def counted(parsed: FindingsAnswer) -> tuple[int, int, int]:
    """Return how many findings the agent, its wave and the thresholds over all agents see."""
    verifier = Verifier(name="tool", kind=Kind.COMMAND)
    report = assess(verifier, [Examined(findings=parsed.findings)], chunks=1)
    seen = ("total < 0",)
    wave = conclude(1, [report], seen, (), last=True, started_at=0.0, ended_at=0.0)
    assert len(report.findings) == report.counts.total
    return report.counts.total, wave.counts.total, int(wave.thresholds[0].why.rpartition(" ")[2])
