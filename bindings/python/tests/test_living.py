"""An index that changes while it serves: threads that add, delete and search at once, replacing, undeleting."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from conftest import DIM, clustered, run_together

import shortlist

LIVE, STILL, K = 300, 700, 10


def vector(number, generation):
    return np.random.default_rng([number, generation]).random(DIM, np.float32)


def distance(a, b):
    return float(((a.astype(np.float64) - b) ** 2).sum())


@pytest.fixture
def living():
    """Ids below LIVE change, and the others never do."""
    index = shortlist.Index(dim=DIM, metric="l2", codes="f32", tags=True)
    index.add(np.stack([vector(i, 0) for i in range(LIVE + STILL)]), ids=np.arange(LIVE + STILL))
    return index


class Notes:
    """What was acknowledged. A generation is a vector of its id, if even; deleted, if odd. begun: the latest that a
    call began to make. done: the latest that a call has made."""

    def __init__(self):
        self.begun, self.done = [0] * LIVE, [0] * LIVE

    def may_be(self, number, score, query, done):
        if number >= LIVE:
            return abs(score - distance(query, vector(number, 0))) < 1e-4
        generations = [g for g in range(done[number], self.begun[number] + 1) if g % 2 == 0]
        return any(abs(score - distance(query, vector(number, g))) < 1e-4 for g in generations)


def change(index, notes, first, rng):
    """Deletes an id, or adds it again, or replaces it. Each thread has every second id."""
    number = int(rng.integers(LIVE // 2)) * 2 + first
    now = notes.done[number]
    replaces = now % 2 == 0 and rng.random() < 0.5
    new = now + 1 + replaces
    notes.begun[number] = new
    if new % 2:
        index.delete(number)
    else:
        index.add(vector(number, new)[None], ids=[number], threads=1, replace=replaces)
    notes.done[number] = new
    assert (number in index) == (new % 2 == 0)
    if new % 2 == 0:
        np.testing.assert_array_equal(index.get(number), vector(number, new))


def test_searches_see_what_was_acknowledged(living):
    notes, over, searches = Notes(), threading.Event(), [0, 0]

    def write(first):
        rng = np.random.default_rng(first)
        for _ in range(150):
            change(living, notes, first, rng)

    def writers():
        try:
            run_together(lambda: write(0), lambda: write(1))
        finally:
            over.set()

    def search(reader):
        rng = np.random.default_rng(100 + reader)
        while not over.is_set() or searches[reader] < 5:
            number = int(rng.integers(LIVE + STILL))
            done = list(notes.done)
            query = vector(number, done[number] if number < LIVE else 0)
            ids, scores = living.search(query, k=K, ef=100)
            ids = [int(i) for i in ids]
            assert len(set(ids)) == K and max(ids) < LIVE + STILL
            for i, score in zip(ids, scores):
                assert notes.may_be(i, score, query, done), (i, score)
            if number >= LIVE:
                assert ids[0] == number
            searches[reader] += 1

    run_together(writers, lambda: search(0), lambda: search(1))
    there = [i for i in range(LIVE) if notes.done[i] % 2 == 0]
    assert len(living) == STILL + len(there)
    assert sorted(living.ids()) == there + list(range(LIVE, LIVE + STILL))
    for i in there:
        np.testing.assert_array_equal(living.get(i), vector(i, notes.done[i]))
    living.check()


def in_another_thread(work):
    """Runs work() to its end in another thread. A work that waits for this thread fails."""
    told = []

    def guarded():
        try:
            told.append(work())
        except BaseException as error:
            told.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(60)
    assert told, "the other thread waits"
    if isinstance(told[0], BaseException):
        raise told[0]
    return told[0]


def test_nothing_that_reads_waits_for_an_add(living, tmp_path):
    """The add waits in its progress function for each of the calls in another thread, and then makes them itself."""
    own, fine = vector(5, 0), shortlist.Filter(living, allow=[5, 6, 7])
    pages = living.iterate(own)
    calls = {
        "search": lambda: living.search(own, k=1)[0][0],
        "filtered": lambda: living.search(own, k=1, filter=fine)[0][0],
        "refresh": lambda: fine.refresh() or len(fine),
        "batch": lambda: living.search(np.stack([own, own]), k=1, threads=2)[0][0, 0],
        "range": lambda: len(living.range_search(own, 1e-6)[1]),
        "iterate": lambda: len(next(pages)[0]),
        "get": lambda: living.get(5)[0] == own[0],
        "contains": lambda: 5 in living and 10**6 not in living,
        "len": lambda: len(living),
        "ids": lambda: len(living.ids()),
        "stats": lambda: living.stats()["n"],
        "recommend": lambda: shortlist.Recommender(living).recommend(own, n=1).ids[0],
    }
    seen = []

    def progress(done, total):
        if not seen:
            seen.extend({name: run(call) for name, call in calls.items()} for run in (in_another_thread, lambda f: f()))

    n = LIVE + STILL
    living.add(clustered(500, seed=4), ids=10**6 + np.arange(500), progress=progress)
    for answers in seen:
        assert answers == {"search": 5, "filtered": 5, "refresh": 3, "batch": 5, "range": 1, "iterate": 10, "get": True,
                           "contains": True, "len": n, "ids": n, "stats": n, "recommend": 5}  # fmt: skip
    assert len(seen) == 2 and len(living) == n + 500 and 10**6 in living


def test_nothing_that_changes_waits_for_a_search(living):
    """The search waits in its filter's function for the changes."""
    asked = []

    def accept(number):
        if not asked:
            asked.append(number)
            in_another_thread(lambda: living.delete(7))
            living.add(vector(7, 2)[None], ids=[7])
            living.set_tags(7, 9)
        return True

    living.search(vector(5, 0), k=3, filter=accept)
    assert asked and living.get_tags(7) == 9


def test_changes_go_on_while_a_save_writes(living, tmp_path):
    """The progress function waits for the changes. The file holds the index as it was when the save began to write."""
    seen = []

    def progress(done, total):
        if not seen:
            seen.append(done)
            in_another_thread(lambda: living.delete(7))
            in_another_thread(lambda: living.add(vector(10**6, 0)[None], ids=[10**6]))

    in_another_thread(lambda: living.delete(8))
    living.save(tmp_path / "a.sl", progress=progress)
    assert seen and 7 not in living and 10**6 in living
    saved = shortlist.open(tmp_path / "a.sl")
    assert 7 in saved and 8 not in saved and 10**6 not in saved and len(saved) == LIVE + STILL - 1
    saved.check()


def test_changes_within_a_change_say_so(living, tmp_path):
    changes = {
        "add": lambda: living.add(vector(1, 8)[None]),
        "delete": lambda: living.delete(1),
        "undelete": lambda: living.undelete(2),
        "tags": lambda: living.set_tags(1, 1),
        "save": lambda: living.save(tmp_path / "a.sl"),
        "check": living.check,
        "tune": lambda: living.tune(clustered(100)),
        "close": living.close,
    }
    living.delete(2)
    for name, call in changes.items():

        def progress(done, total, call=call):
            call()

        for outer in (lambda: living.add(vector(1, 4)[None], progress=progress), lambda: living.check(progress=progress)):
            with pytest.raises(shortlist.Error, match="in use") as caught:
                outer()
            assert caught.value.status == "SL_EBUSY", name
    assert len(living) == LIVE + STILL - 1 and 1 in living


def test_a_filtered_search_waits_for_one_refresh(living):
    """Eight threads wait to refresh when one search comes: it goes after the refresh it waited for, not after all."""
    order, inside, go = [], threading.Event(), threading.Event()

    def hold(number):
        inside.set()
        go.wait(60)
        return True

    def filter_of(accept):
        armed = []
        made = shortlist.Filter(living, lambda number: accept(number) if armed else True)
        armed.append(True)
        return made

    def turn(number):
        if number == 0:
            time.sleep(0.02)
        return True

    held, others = filter_of(hold), [filter_of(turn) for _ in range(8)]

    def refresh(one):
        one.refresh()
        order.append("refresh")

    def search():
        living.search(vector(5, 0), filter=others[0])
        order.append("search")

    threads = [threading.Thread(target=refresh, args=(one,)) for one in [held, *others]]
    threads.append(threading.Thread(target=search))
    for thread in threads:
        thread.start()
        assert inside.wait(60)
    threads[-1].join(0.3)
    assert order == []
    in_another_thread(lambda: living.search(vector(5, 0)))
    go.set()
    for thread in threads:
        thread.join()
    # A further refresh may have had its turn where the search began to wait late.
    assert len(order) == 10 and order.index("search") <= 3, order


def test_replaced(living):
    ids = [5, 10**6, 3]
    rows = np.stack([vector(i, 2) for i in ids])
    with pytest.raises(ValueError, match="id 5 is already in the index"):
        living.add(rows, ids=ids)
    kept = shortlist.Filter(living, allow=[5, 6])
    living.add(rows, ids=ids, tags=[1, 2, 3], replace=True)
    assert len(living) == LIVE + STILL + 1 and living.stats()["deleted"] == 2
    np.testing.assert_array_equal(living.get(ids), rows)
    np.testing.assert_array_equal(living.search(rows, k=1)[0].ravel(), ids)
    np.testing.assert_array_equal(living.get_tags(ids), [1, 2, 3])
    assert len(kept) == 1 and living.search(rows[0], k=1, filter=kept)[0][0] == 6
    kept.refresh()
    assert len(kept) == 2 and living.search(rows[0], k=1, filter=kept)[0][0] == 5
    living.check()


def test_replaced_all_or_nothing(living):
    rows = np.stack([vector(5, 2), vector(6, 2)])
    with pytest.raises(ValueError, match="row 1: id 5 is also that of row 0"):
        living.add(rows, ids=[5, 5], replace=True)
    with pytest.raises(ValueError, match="row 1"):
        living.add(np.stack([rows[0], np.full(DIM, np.nan, np.float32)]), ids=[5, 6], replace=True)
    with pytest.raises(shortlist.Error, match="cancel") as caught:
        living.add(rows, ids=[5, 6], replace=True, progress=lambda done, total: True)
    assert caught.value.status == "SL_ECANCELED"
    np.testing.assert_array_equal(living.get([5, 6]), [vector(5, 0), vector(6, 0)])
    assert len(living) == LIVE + STILL and living.stats()["deleted"] == 0


def test_replaced_with_several_vectors_an_id():
    index = shortlist.Index(dim=DIM, metric="l2", codes="f32", multi=True)
    rows = clustered(5)
    index.add(rows, ids=[7, 7, 8, 7, 9])
    index.add(rows[:2] + 1, ids=[7, 7], replace=True)
    assert len(index) == 4 and len(index.get_all(7)) == 2
    index.delete(7)
    index.undelete(7)
    assert len(index) == 4 and sorted(map(tuple, index.get_all(7))) == sorted(map(tuple, rows[:2] + 1))


def as_set(rows):
    return sorted(map(tuple, rows))


def test_replaced_one_of_an_id():
    index = shortlist.Index(dim=DIM, metric="l2", codes="f32", multi=True)
    rows = clustered(5)
    index.add(rows, ids=[7, 7, 8, 7, 9])
    index.add(rows[1:2] + 1e-3, ids=[7], replace="one")
    assert as_set(index.get_all(7)) == as_set([rows[0], rows[1] + np.float32(1e-3), rows[3]])
    far = rows[:3] + 50
    wide = np.zeros((3, 2 * DIM), np.float32)
    wide[:, :DIM] = rows[[3, 3, 4]]
    index.add(far, ids=[7, 9, 10], replace="one", old=wide[:, :DIM])
    assert as_set(index.get_all(7)) == as_set([rows[0], rows[1] + np.float32(1e-3), far[0]])
    assert as_set(index.get_all(9)) == as_set([far[1]]) and as_set(index.get_all(10)) == as_set([far[2]])
    index.add(rows[4:], ids=[7], replace="one", old=far[:1].astype(np.float16))
    assert len(index) == 6 and tuple(rows[4]) in as_set(index.get_all(7))
    before = as_set(index.get_all(7))
    for settings, says in (
        ({"replace": "two"}, "replace is 'two'; it must be one of none, all, one"),
        ({"replace": "one", "old": rows[:2]}, "old has 2 rows, but x has 1"),
        ({"replace": "one", "old": rows[:1, :4]}, "old has vectors of dimension 4"),
        ({"replace": "one", "old": rows[:1] * np.nan}, "row of old 0"),
        ({"replace": "all", "old": rows[:1]}, "SL_REPLACE_ONE"),
        ({"old": rows[:1]}, "SL_REPLACE_ONE"),
    ):
        with pytest.raises(ValueError, match=says):
            index.add(rows[:1], ids=[7], **settings)
        assert as_set(index.get_all(7)) == before
    index.check()


def test_undeleted(living):
    living.add(vector(5, 2)[None], ids=[5], tags=[77], replace=True)
    living.delete([5, 6, 7])
    for ids, kind, says in (
        ([5, 10**6], KeyError, "id 1000000 was not deleted"),
        ([5, 8], ValueError, "id 8 is in the index"),
        ([5, 5], ValueError, "id 5"),
        ([[5]], ValueError, "shape"),
    ):
        with pytest.raises(kind, match=says):
            living.undelete(ids)
        assert len(living) == LIVE + STILL - 3 and 5 not in living
    living.undelete([])
    living.undelete(np.array([5, 6], np.int32))
    living.undelete(7)
    assert len(living) == LIVE + STILL and living.get_tags(5) == 77
    np.testing.assert_array_equal(living.get([5, 6]), [vector(5, 2), vector(6, 0)])
    assert living.search(vector(6, 0), k=1)[0][0] == 6
    with pytest.raises(ValueError, match="id 7 is in the index"):
        living.undelete(7)
    living.check()


def test_files_keep_what_was_undeleted_and_replaced(living, tmp_path):
    path = tmp_path / "a.sl"
    living.save(path, room=LIVE + STILL + 100)
    reader = shortlist.open(path)
    with shortlist.open(path, read_only=False) as writer:
        writer.delete([5, 6])
        writer.undelete(5)
        writer.add(vector(7, 2)[None], ids=[7], replace=True)
        writer.sync()
        np.testing.assert_array_equal(reader.get([5, 7]), [vector(5, 0), vector(7, 2)])
        assert 6 not in reader and len(reader) == len(writer) == LIVE + STILL - 1
    with pytest.raises(shortlist.Error, match="read-only") as caught:
        reader.undelete(6)
    assert caught.value.status == "SL_EREADONLY"
    with shortlist.open(path, read_only=False) as again, pytest.raises(KeyError, match="not deleted by this handle|not in"):
        again.undelete(6)


def test_len_after_the_end(living):
    living.close()
    assert len(living) == LIVE + STILL
    with pytest.raises(ValueError, match="closed"):
        living.undelete(5)


def test_compacted(living):
    gone = list(range(0, LIVE, 2))
    living.delete(gone)
    deleted = living.stats()["deleted"] + living.stats()["reusable"]
    assert deleted == len(gone)
    with pytest.raises(shortlist.Error, match="cancel"):
        living.compact(progress=lambda done, total: True)
    living.compact()
    stats = living.stats()
    assert stats["deleted"] == stats["reusable"] == 0 and len(living) == LIVE + STILL - len(gone)
    assert living.search(vector(1, 0), k=1)[0][0] == 1
    living.check()


def test_recall_measured(living):
    report = living.recall(sample=50, k=5, ef=64)
    assert report.sampled == 50 and report.recall >= 0.95 and report.lost == 0
    assert 0 <= report.standard_error < 0.05
    assert living.recall(sample=50, k=5, ef=64) == report
    assert living.recall(sample=50, k=5, ef=1).recall <= report.recall
    assert living.recall(sample=10**6, seconds=0.05).sampled < 10**6
    with pytest.raises(ValueError, match="sample is 0"):
        living.recall(sample=0)
    with pytest.raises(ValueError, match="seconds is -1"):
        living.recall(seconds=-1)
    with pytest.raises(shortlist.Error, match="cancel"):
        living.recall(progress=lambda done, total: True)


def test_stats_tell_who_holds_old_versions(living):
    """A search that waits in its callback holds the epoch in which it began."""
    seen, begun = {}, living.stats()["epoch"]
    assert living.stats()["holders"] == []

    def accept(id):
        if not seen:
            living.delete(1)
            living.delete(2)
            seen.update(living.stats())
        return True

    thread = threading.Thread(target=lambda: living.search(vector(5, 0)[None], k=3, filter=accept))
    thread.start()
    thread.join()
    assert seen["epoch"] == begun + 2 and seen["oldest_epoch"] == begun
    assert seen["versions_held"] == 2 and seen["bytes_held"] > 0
    (holder,) = seen["holders"]
    assert holder == {"epoch": begun, "pid": os.getpid(), "tid": thread.native_id}
    living.delete(3)
    stats = living.stats()
    assert stats["versions_held"] == stats["bytes_held"] == 0 and stats["oldest_epoch"] == stats["epoch"]
    assert stats["in_repair"] == 0
    for number in range(4, 100):
        living.delete(number)
    stats = living.stats()
    assert stats["in_repair"] + stats["reusable"] > 0
    assert stats["deleted"] + stats["reusable"] == 99
