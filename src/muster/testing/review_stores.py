"""What every store must do for reviews and baselines, as checks like those of `muster.testing.stores`."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

from dataclasses import replace

from muster.domain.errors import BadArgument, Conflict, NotFound
from muster.domain.ids import RunId
from muster.domain.review import Opinion, Review
from muster.store.base import Baseline, Store
from muster.testing.batch_stores import SECRET
from muster.testing.stores import NOW, Check, new_run, raises

REVIEW = Review(run=RunId("run1"), case="s/one", subject="sim/echo", epoch=1, opinion=Opinion.WRONG, at=NOW, note="no")


async def keeps_the_newest_review_of_each_person(store: Store) -> None:
    """A second review of one person takes the place of the first; others stay beside it."""
    await store.runs.create(new_run("run1"))
    others = [
        replace(REVIEW, by="ada"),
        replace(REVIEW, epoch=2),
        replace(REVIEW, subject="x"),
        replace(REVIEW, case="a"),
    ]
    for review in (REVIEW, *others):
        await store.reviews.add(review)
    second = replace(REVIEW, opinion=Opinion.RIGHT, at=NOW + 1, note="looked again")
    await store.reviews.add(second)
    await store.reviews.add(replace(REVIEW, opinion=Opinion.BORDERLINE, at=NOW - 1))  # a late arrival is no news
    found = await store.reviews.of_run(RunId("run1"))
    assert sorted(found, key=repr) == sorted((second, *others), key=repr)
    assert [review.case for review in found] == sorted(review.case for review in found)


async def reviews_only_runs_that_are_here(store: Store) -> None:
    """A review needs its run."""
    await raises(NotFound, store.reviews.add(REVIEW))
    assert list(await store.reviews.of_run(RunId("run1"))) == []


async def forgets_reviews_with_their_run(store: Store) -> None:
    """A deleted run takes its reviews along, and no others."""
    for name in ("run1", "run2"):
        await store.runs.create(new_run(name))
        await store.reviews.add(replace(REVIEW, run=RunId(name)))
    await store.commands.delete(RunId("run1"), NOW)
    assert list(await store.reviews.of_run(RunId("run1"))) == []
    assert len(await store.reviews.of_run(RunId("run2"))) == 1


async def keeps_secrets_out_of_reviews(store: Store) -> None:
    """A configured secret in a note or a name is not stored."""
    await store.runs.create(new_run("run1"))
    await store.reviews.add(replace(REVIEW, note=f"it said {SECRET}", by=SECRET))
    (found,) = await store.reviews.of_run(RunId("run1"))
    assert SECRET not in found.note + found.by
    await raises(BadArgument, _set(store, SECRET))


async def gives_a_name_to_one_run_at_a_time(store: Store) -> None:
    """A baseline is found by its name, moves to another run, and is removed once."""
    for name in ("run1", "run2"):
        await store.runs.create(new_run(name))
    await _set(store, "main")
    assert await store.baselines.find("main") == Baseline(name="main", run=RunId("run1"), at=NOW)
    assert await store.baselines.find("MAIN") is None
    moved = Baseline(name="main", run=RunId("run2"), at=NOW + 1)
    other = Baseline(name="a", run=RunId("run2"), at=NOW)
    await store.baselines.set(moved.name, moved.run, moved.at)
    await store.baselines.set(other.name, other.run, other.at)
    assert list(await store.baselines.all()) == [other, moved]
    await store.baselines.remove("main")
    await raises(NotFound, store.baselines.remove("main"))
    assert list(await store.baselines.all()) == [other]


async def names_only_runs_that_are_here(store: Store) -> None:
    """A baseline needs its run."""
    await raises(NotFound, _set(store, "main"))
    assert list(await store.baselines.all()) == []


async def keeps_a_run_that_a_baseline_names(store: Store) -> None:
    """A run with a name cannot be deleted until the name is gone; the refusal tells the name."""
    await store.runs.create(new_run("run1"))
    await _set(store, "main")
    error = await raises(Conflict, store.commands.delete(RunId("run1"), NOW))
    assert "main" in error.message
    assert await store.runs.get(RunId("run1")) is not None
    await store.baselines.remove("main")
    await store.commands.delete(RunId("run1"), NOW)
    assert await store.runs.get(RunId("run1")) is None


async def _set(store: Store, name: str) -> None:
    await store.baselines.set(name, RunId("run1"), NOW)


CHECKS: tuple[Check, ...] = (
    keeps_the_newest_review_of_each_person,
    reviews_only_runs_that_are_here,
    forgets_reviews_with_their_run,
    keeps_secrets_out_of_reviews,
    gives_a_name_to_one_run_at_a_time,
    names_only_runs_that_are_here,
    keeps_a_run_that_a_baseline_names,
)
