"""The observer of a long operation."""

from __future__ import annotations

from bunko.runtime.observer import NO_OBSERVER, CrawlProgress, ImportProgress, Observer


def test_an_observer_without_callbacks_does_nothing_and_never_cancels() -> None:
    NO_OBSERVER.on_progress(ImportProgress(1, 2, 3, 4, 5))
    NO_OBSERVER.on_crawl(CrawlProgress(1, 2, 0))
    NO_OBSERVER.on_step("Measuring", 1, 2)
    NO_OBSERVER.on_wait("Another process is importing into this library")
    assert not NO_OBSERVER.is_cancelled()


def test_an_import_can_be_reported_as_a_step_of_an_evaluation() -> None:
    steps: list[tuple[str, int, int]] = []
    observer = Observer(on_step=lambda step, done, total: steps.append((step, done, total)), is_cancelled=lambda: True)
    observer.for_step("Importing").on_progress(ImportProgress(1, 2, 3, 4, 5))
    assert steps == [("Importing", 1, 2)]
    assert observer.for_step("Importing").is_cancelled()
