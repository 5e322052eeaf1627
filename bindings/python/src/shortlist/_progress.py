"""The progress of a long call."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, Optional, Union

ProgressFunction = Callable[[int, int], Optional[bool]]
"""Told (done, total) some ten times a second and at the end; returning True cancels the call."""

Progress = Union[bool, ProgressFunction]


class _Line:
    """One line on stderr, written over itself."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._start = time.monotonic()

    def tell(self, done: int, total: int) -> None:
        elapsed = time.monotonic() - self._start
        rate = done / elapsed if elapsed > 0 else 0.0
        share = 100 * done / total if total else 100.0
        sys.stderr.write(f"\r{self._what}: {done}/{total} ({share:.0f} %), {rate:,.0f}/s")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\n")
        sys.stderr.flush()


class _Bar:
    """tqdm's bar."""

    def __init__(self, tqdm: Any, what: str, unit: str) -> None:
        self._bar = tqdm.tqdm(desc=what, unit=unit, unit_scale=True, total=0)

    def tell(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def _display(what: str, unit: str) -> _Line | _Bar:
    try:
        tqdm = importlib.import_module("tqdm")
    except ImportError:
        return _Line(what)
    return _Bar(tqdm, what, unit)


@contextmanager
def shown(progress: Progress, what: str, unit: str) -> Iterator[ProgressFunction | None]:
    """The function to hand to a long call: the caller's own, or one that shows how far the call is, or None."""
    if not isinstance(progress, bool):
        if not callable(progress):
            raise TypeError("progress must be True, False, or a function of (done, total)")
        yield progress
    elif progress:
        display = _display(what, unit)
        try:
            yield display.tell
        finally:
            display.close()
    else:
        yield None
