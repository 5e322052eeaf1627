"""Who may change a file: claims, saves over what another has changed, and children of a fork."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pytest
from conftest import clustered, forks

import shortlist

N, ROOM = 2000, 3000

ADD_IN_TURNS = """
import sys
import numpy as np
import shortlist

path, first, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for i in range(rounds):
    with shortlist.open(path, place="dram", exclusive=True, wait=300) as index:
        index.add(np.random.default_rng(first + i).standard_normal((5, index.dim)), ids=first + 5 * i + np.arange(5))
        index.save(path)
"""


@pytest.fixture
def saved(ready, tmp_path):
    path = tmp_path / "items.sl"
    ready.save(path)
    return path


@pytest.fixture
def more():
    return clustered(400, seed=11)


@contextlib.contextmanager
def busy(match):
    with pytest.raises(shortlist.Error, match=match) as caught:
        yield
    assert caught.value.status == "SL_EBUSY"


def claimed(path, wait=0.0):
    return shortlist.open(path, place="dram", exclusive=True, wait=wait)


class Child:
    """A forked process at work(): fails the test where that raises, or takes longer than a minute."""

    def __init__(self, work):
        self.number = os.fork()
        if self.number == 0:
            code = 1
            try:
                signal.alarm(60)
                work()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)

    def join(self):
        assert os.waitpid(self.number, 0)[1] == 0


def test_processes_that_claim_the_file_lose_nothing(saved):
    """Each opens, adds and saves over the file, time and again."""
    rounds, firsts = 8, (1_000_000, 2_000_000)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", ADD_IN_TURNS, str(saved), str(first), str(rounds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for first in firsts
    ]  # fmt: skip
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        _, told = child.communicate()
        assert child.returncode == 0, told
    with shortlist.open(saved) as index:
        assert len(index) == N + 2 * 5 * rounds
        for first in firsts:
            index.get(first + np.arange(5 * rounds))
        index.check()


@pytest.mark.parametrize("place", ["dram", "map"])
def test_a_save_undoes_no_other(place, saved, tmp_path, more):
    """Neither of two that opened the file has claimed it: the second to save is told."""
    first, second = shortlist.open(saved, place="dram"), shortlist.open(saved, place=place)
    first.add(more[:10])
    first.save(saved)
    with busy("replaced or changed by another.*open it again"):
        second.save(saved)
    assert len(shortlist.open(saved)) == N + 10
    second.save(tmp_path / "other.sl")
    assert len(shortlist.open(tmp_path / "other.sl")) == N
    first.save(saved)
    again = shortlist.open(saved, place=place)
    again.save(saved)
    assert len(shortlist.open(saved)) == N + 10


def test_a_save_undoes_no_sync(ready, saved, more):
    ready.save(saved, room=ROOM)
    copy = shortlist.open(saved, place="dram")
    with shortlist.open(saved, read_only=False) as writer:
        with busy("being written|changed by another"):
            copy.save(saved)
        writer.add(more[:10])
        writer.sync()
    with busy("replaced or changed by another"):
        copy.save(saved)
    assert len(shortlist.open(saved)) == N + 10


@pytest.mark.parametrize("room", [0, ROOM])
@pytest.mark.parametrize("place", ["dram", "map"])
def test_a_claim_keeps_others_off(place, room, ready, saved, more):
    ready.save(saved, room=room)
    reader = shortlist.open(saved)
    with shortlist.open(saved, place=place, exclusive=True) as mine:
        assert mine.read_only == (place == "map")
        with busy("being written"):
            reader.save(saved)
        for _ in range(2):
            with busy("being written"):
                claimed(saved)
            if room:
                with busy("being written"):
                    shortlist.open(saved, read_only=False)
            mine.save(saved, room=room)
        with busy("replaced or changed by another"):
            reader.save(saved)
        assert len(shortlist.open(saved)) == N
    claimed(saved).close()


def test_what_is_written_in_place_cannot_be_claimed_too(ready, saved):
    ready.save(saved, room=ROOM)
    with pytest.raises(ValueError, match="exclusive"):
        shortlist.open(saved, read_only=False, exclusive=True)
    with shortlist.open(saved, read_only=False), busy("being written"):
        claimed(saved)


def test_a_writer_notices_that_its_file_is_gone(ready, saved, tmp_path, more):
    ready.save(saved, room=ROOM)
    ready.save(tmp_path / "other.sl")
    writer = shortlist.open(saved, read_only=False)
    writer.add(more[:10])
    os.replace(tmp_path / "other.sl", saved)
    with busy("renamed, removed or replaced"):
        writer.sync()
    writer.close()
    assert len(shortlist.open(saved)) == N


@pytest.mark.parametrize("room", [0, ROOM])
def test_opening_waits(room, ready, saved, more):
    """For a claim, or for a writer of a file with room; other threads go on meanwhile."""
    ready.save(saved, room=room)
    how = {"read_only": False} if room else {"place": "dram", "exclusive": True}
    holder = shortlist.open(saved, **how)
    start = time.monotonic()
    with busy("being written"):
        shortlist.open(saved, **how, wait=0.2)
    assert time.monotonic() - start >= 0.2
    holder.add(more[:10])
    entered, order = threading.Event(), []

    def follow():
        entered.set()
        with shortlist.open(saved, **how, wait=60) as next_one:
            order.append("opened")
            assert len(next_one) == N + 10

    thread = threading.Thread(target=follow)
    thread.start()
    entered.wait(60)
    time.sleep(0.1)
    if room:
        holder.sync()
    else:
        holder.save(saved)
    order.append("closing")
    holder.close()
    thread.join(60)
    assert order == ["closing", "opened"]


def test_a_signal_ends_the_wait(saved):
    class Rang(Exception):
        pass

    def ring(number, frame):
        raise Rang

    old = signal.signal(signal.SIGALRM, ring)
    try:
        with claimed(saved):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(Rang):
                claimed(saved, wait=float("inf"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    claimed(saved).close()


@pytest.mark.parametrize("wait", [-1, float("nan"), "soon"])
def test_waits_that_are_none(wait, saved):
    with pytest.raises((ValueError, TypeError), match=r"wait|float"):
        claimed(saved, wait=wait)


@forks
@pytest.mark.parametrize("layout", ["arrays", "records"])
def test_a_fork_makes_no_second_writer(layout, ready, saved, x, more):
    """The parent's rows are all there though the child tried to write; what each may do is said to it."""
    ready.save(saved, room=ROOM, layout=layout)
    writer = shortlist.open(saved, read_only=False)
    writer.add(more[:100], ids=10_000 + np.arange(100))
    writer.sync()
    writer.add(more[100:200], ids=10_100 + np.arange(100))
    synced_read, synced_write = os.pipe()

    def child():
        for change in (
            lambda: writer.add(more[300:], ids=20_000 + np.arange(100)),
            lambda: writer.delete([3, 4]),
            writer.sync,
            writer.check,
            lambda: writer.save(saved),
            lambda: writer.save(f"{saved}.copy"),
        ):
            with busy("forked"):
                change()
        # Before and after the parent syncs.
        for _ in range(2):
            assert (writer.search(x[:200], k=1, ef=200)[0][:, 0] == np.arange(200)).all()
            assert os.read(synced_read, 1) == b"s"
        with busy("being written"):
            shortlist.open(saved, read_only=False)
        writer.close()

    forked = Child(child)
    os.write(synced_write, b"s")
    writer.sync()
    writer.add(more[200:300], ids=10_200 + np.arange(100))
    writer.sync()
    os.write(synced_write, b"s")
    forked.join()
    with busy("being written"):
        shortlist.open(saved, read_only=False)
    writer.delete(7)
    writer.sync()
    writer.close()
    with shortlist.open(saved) as index:
        assert len(index) == N + 300 - 1
        np.testing.assert_allclose(index.get(10_000 + np.arange(300)), more[:300], rtol=1e-6)
        with pytest.raises(KeyError):
            index.get(20_000)
        report = index.check(scrub=True)
        assert report.bad_records == report.bad_pages == report.bad_links == 0 and report.records_checked > N


@forks
def test_a_child_that_writes_opens_the_file_itself(ready, saved, more):
    """The parent's writer is closed by then. A child that keeps a copy of the writer does not keep the file locked."""
    ready.save(saved, room=ROOM)
    writer = shortlist.open(saved, read_only=False)
    writer.add(more[:10])
    writer.sync()

    def child():
        with shortlist.open(saved, read_only=False, wait=60) as own:
            own.add(more[10:20])
            own.sync()
        with busy("forked"):
            writer.sync()

    forked = Child(child)
    writer.close()
    forked.join()
    assert len(shortlist.open(saved)) == N + 20


@forks
def test_a_fork_makes_no_second_holder_of_a_claim(saved, more):
    index = claimed(saved)

    def child():
        index.add(more[:10])
        assert len(index) == N + 10
        with busy("forked"):
            index.save(saved)
        index.close()
        with busy("being written"):
            claimed(saved)

    Child(child).join()
    assert len(index) == N
    with busy("being written"):
        claimed(saved)
    index.save(saved)
    index.close()
    claimed(saved).close()


def answer(index, q, way):
    way.send(index.search(q, k=10, threads=2)[0])


@forks
@pytest.mark.parametrize("room", [0, ROOM])
@pytest.mark.parametrize("place", ["map", "dram"])
def test_children_of_multiprocessing_search(place, room, ready, saved, q):
    ready.save(saved, room=room)
    index = shortlist.open(saved, place=place, read_only=True)
    expected = index.search(q, k=10, threads=2)[0]
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    children = [context.Process(target=answer, args=(index, q, there)) for _ in range(2)]
    for child in children:
        child.start()
        assert here.poll(60)
        np.testing.assert_array_equal(here.recv(), expected)
        child.join(60)
        assert child.exitcode == 0


def test_check_tells_what_it_verified(ready, saved):
    report = shortlist.open(saved).check()
    assert (report.pages_checked, report.bad_pages, report.unverified) == (0, 0, False)
    ready.save(saved, room=ROOM)
    report = shortlist.open(saved).check()
    assert report.pages_checked > 10 and report.bad_pages == 0 and report.unverified is False
    assert f"pages_checked={report.pages_checked}, bad_pages=0, unverified=False" in repr(report)
    content = bytearray(saved.read_bytes())
    at = next(at for at in range(len(content) // 2, len(content)) if content[at])
    content[at] ^= 1
    saved.write_bytes(content)
    with pytest.raises(shortlist.Error, match="page") as caught:
        shortlist.open(saved).check()
    assert caught.value.report.bad_pages == 1 and caught.value.report.pages_checked == report.pages_checked
