"""Threads, progress, cancelling, signals and forks."""

from __future__ import annotations

import builtins
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from conftest import DIM, OPTIONS, clustered, forks, moves, run_together

import shortlist


def big(n=30_000):
    return clustered(n, seed=5)


def test_progress_is_told_and_ends_at_the_total(x):
    told = []
    shortlist.Index(dim=DIM).add(x, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(x), len(x))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_progress_cancels_and_nothing_is_added(x, q):
    ix = shortlist.Index(dim=DIM)
    ix.add(x)
    before = ix.search(q)
    with pytest.raises(shortlist.Error) as caught:
        ix.add(big(), progress=lambda done, total: True)
    assert caught.value.status == "SL_ECANCELED"
    assert len(ix) == len(x)
    np.testing.assert_array_equal(ix.search(q)[0], before[0])
    ix.check()
    ix.add(big(100))
    assert len(ix) == len(x) + 100


def test_what_progress_raises_is_raised(x):
    class Stop(Exception):
        pass

    def stop(done, total):
        raise Stop("enough")

    ix = shortlist.Index(dim=DIM)
    with pytest.raises(Stop, match="enough"):
        ix.add(x, progress=stop)
    assert len(ix) == 0


def test_other_values_of_progress():
    ix = shortlist.Index(dim=DIM)
    with pytest.raises(TypeError, match="progress"):
        ix.add(clustered(3), progress="yes")
    ix.add(clustered(3), progress=lambda done, total: 1)
    assert len(ix) == 3


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_progress_is_shown(with_tqdm, x, capsys, monkeypatch, tmp_path):
    if with_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    ix = shortlist.Index(dim=DIM)
    ix.add(x, progress=True)
    ix.check(progress=True)
    ix.save(tmp_path / "a.sl", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "adding" in err and "checking" in err and "saving" in err
    assert "100%" in err if with_tqdm else "2000/2000 (100 %)" in err


def test_saving_can_be_cancelled(ready, tmp_path):
    with pytest.raises(shortlist.Error) as caught:
        ready.save(tmp_path / "a.sl", progress=lambda done, total: True)
    assert caught.value.status == "SL_ECANCELED"
    assert os.listdir(tmp_path) == []


def test_the_counter_stands_still_where_the_gil_is_kept(counter):
    numbers = list(range(10_000))
    assert not moves(counter, lambda: sorted(numbers))


def test_python_runs_while_the_library_works(counter, ready, x, q, tmp_path):
    path, numbers = tmp_path / "a.sl", np.tile(np.arange(len(x), dtype=np.uint64), 20)
    ready.save(path)
    core, f32, dram = ready._core, shortlist._core.DTYPES["f32"], shortlist._core.PLACES["dram"]
    ids, scores = np.empty((len(q), 10), np.uint64), np.empty((len(q), 10), np.float32)
    vectors, name = np.empty((len(numbers), DIM), np.float32), os.fsencode(path)
    calls = {
        "add": lambda: shortlist.Index(dim=DIM)._core.add(x, f32, None, None, None, 0, None, 0, 1, None),
        "search": lambda: core.search(q, f32, 10, OPTIONS, ids, scores),
        "search as is": lambda: core.search_as_is(q, 10, 64, 1, 0, None, 0.0, 0, 0),
        "get": lambda: core.get(numbers, len(numbers), f32, vectors),
        "save": lambda: core.save(name, 0, 0, None),
        "check": lambda: core.check(200, 10, 200, 1, False, None),
        "open": lambda: shortlist._core.Index.open(name, dram, False, 0, 0, 0, 1, False, 0.0),
        "exact": lambda: shortlist._core.exact(x, q, f32, 0, DIM, 10, 1, ids, scores),
    }
    stood_still = [what for what, call in calls.items() if not moves(counter, call)]
    assert not stood_still


def test_threads_search_beside_each_other(ready, q):
    expected = ready.search(q)[0]

    def search():
        for _ in range(20):
            np.testing.assert_array_equal(ready.search(q)[0], expected)

    run_together(*[search] * 4)


def test_threads_may_add_search_save_and_read_at_once(tmp_path, q):
    ix = shortlist.Index(dim=DIM)
    parts = [clustered(200, seed=10 + i) for i in range(6)]

    def adder(mine):
        for part in mine:
            ix.add(part, threads=1)

    def reader():
        while len(ix) < 1200:
            ids, _ = ix.search(q, k=5)
            assert ((ids < 1200) | (ids == shortlist.NO_ID)).all()
            ix.stats()
            if len(ix):
                ix.get(0)

    def saver():
        for i in range(3):
            ix.save(tmp_path / f"{i}.sl")
            shortlist.open(tmp_path / f"{i}.sl").check(sample=20)

    run_together(lambda: adder(parts[:3]), lambda: adder(parts[3:]), reader, reader, saver)
    assert len(ix) == 1200
    ix.check()


def test_a_long_write_is_left_alone(x):
    """A second writer waits longer than it does at a time, and longer than the first one's pause."""
    ix, begun, order = shortlist.Index(dim=DIM), threading.Event(), []

    def pause(done, total):
        if not begun.is_set():
            begun.set()
            time.sleep(0.5)
            # Told from within the add: once it has returned, the second may be told of before it.
            order.append("first")

    def first():
        ix.add(x, threads=1, progress=pause)

    def second():
        begun.wait()
        ix.add(clustered(100, seed=7))
        order.append("second")

    run_together(first, second)
    assert order == ["first", "second"]
    ix.check()


def test_closing_while_others_search(x, q):
    ix = shortlist.Index(dim=DIM)
    ix.add(x)
    begun = threading.Barrier(3)

    def search():
        begun.wait()
        with pytest.raises(ValueError, match="closed"):
            while True:
                ix.search(q)

    def close():
        begun.wait()
        ix.close()

    run_together(search, search, close)


def test_an_index_used_from_its_own_callback_says_so(x, q):
    ix = shortlist.Index(dim=DIM)
    ix.add(x)
    for use in (lambda: ix.add(x), lambda: ix.close()):
        with pytest.raises(shortlist.Error, match="in use") as caught:
            ix.add(x[:100], progress=lambda done, total, use=use: use() and None)
        assert caught.value.status == "SL_EBUSY"
        assert len(ix) == len(x)
    seen = []
    ix.add(x[:100], progress=lambda done, total: seen.append((len(ix), ix.dim, repr(ix), ix.search(q)[0].max())))
    assert seen[0][:2] == (len(x), DIM) and seen[0][3] < len(x)
    other = shortlist.Index(dim=DIM)
    ix.add(x[:100], progress=lambda done, total: other.add(x[:10]))
    assert len(other) >= 10


def test_ctrl_c_ends_an_add_and_nothing_is_added():
    """In a process of its own: a thread there sends SIGINT at the add's first word."""
    code = """
        import os, signal, threading
        import numpy as np
        import shortlist

        x = np.random.default_rng(0).standard_normal((60_000, 64)).astype(np.float32)
        ix = shortlist.Index(dim=64)
        ix.add(x[:1000])
        told = []

        begun = threading.Event()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background inherits none

        def progress(done, total):
            told.append(done)
            begun.set()

        def press():
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=press).start()
        try:
            ix.add(x, progress=progress)
        except KeyboardInterrupt:
            assert told[-1] < len(x), told
            assert len(ix) == 1000
            ix.check()
            ix.add(x[:100])
            print("interrupted")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "interrupted\n", done.stderr


def test_signals_are_served_without_progress():
    """An alarm during an add that tells nobody; what its handler raises ends the add."""

    class Rang(Exception):
        pass

    def ring(number, frame):
        raise Rang

    old = signal.signal(signal.SIGALRM, ring)
    ix, data = shortlist.Index(dim=DIM, ef_build=400), clustered(60_000, seed=5)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Rang):
            ix.add(data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert len(ix) == 0


@forks
@pytest.mark.parametrize("threads", [1, 0, 2])
def test_a_forked_child_goes_on_searching(threads, tmp_path, x, q):
    """The parent has used several threads, which do not come along."""
    ix = shortlist.Index(dim=DIM)
    ix.add(x, threads=2)
    ix.save(tmp_path / "a.sl")
    mapped = shortlist.open(tmp_path / "a.sl")
    expected = ix.search(q, threads=2)[0]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            assert (ix.search(q, threads=threads)[0] == expected).all()
            assert (mapped.search(q, threads=threads)[0] == expected).all()
            ix.add(clustered(50, seed=9), threads=threads)
            assert len(ix) == len(x) + 50
            ix.check(threads=threads)
            shortlist.exact(x, q, k=3, threads=threads)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert len(ix) == len(x)
    np.testing.assert_array_equal(ix.search(q, threads=2)[0], expected)


@forks
def test_a_fork_in_mid_add_leaves_the_child_a_clear_word(x):
    """The child's copy is half changed: the child searches what was there before. Changes say so. Another index works."""
    ix, other = shortlist.Index(dim=DIM), shortlist.Index(dim=DIM)
    ix.add(x[:1000])
    other.add(x)
    begun, go_on = threading.Event(), threading.Event()

    def progress(done, total):
        begun.set()
        go_on.wait(60)

    thread = threading.Thread(target=lambda: ix.add(x[1000:], threads=1, progress=progress))
    thread.start()
    begun.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            assert ix.search(x[5])[0][0] == 5 and len(ix) == 1000
            for change in (lambda: ix.add(x[:1]), lambda: ix.delete(1), ix.check):
                try:
                    change()
                except shortlist.Error as error:
                    assert error.status == "SL_EBUSY" and "forked" in str(error)
                else:
                    raise AssertionError("a half changed index was changed")
            other.delete(1)
            assert other.search(x[5])[0][0] == 5
            code = 0
        finally:
            os._exit(code)
    go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert len(ix) == len(x)


def test_importing_needs_no_tqdm(monkeypatch):
    done = subprocess.run(
        [sys.executable, "-c", "import sys, shortlist; sys.exit('tqdm' in sys.modules)"], capture_output=True
    )
    assert done.returncode == 0 and builtins.open is not shortlist.open
