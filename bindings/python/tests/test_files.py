"""Saving and opening."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest
from conftest import DIM, clustered

import shortlist


@pytest.fixture
def saved(ready, tmp_path):
    path = tmp_path / "items.sl"
    ready.save(path)
    return path


@pytest.mark.parametrize("place", ["map", "dram"])
def test_a_saved_index_answers_the_same(place, ready, saved, q, x):
    ix = shortlist.open(saved, place=place)
    assert len(ix) == len(ready) and ix.stats()["place"] == place
    for got, expected in zip(ix.search(q, k=10), ready.search(q, k=10)):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(ix.get([3, 1999]), x[[3, 1999]])
    report = ix.check()
    assert report.sections_checked > 0 if place == "map" else report.n == len(ready)
    assert repr(ix) == repr(ready)


def test_ids_and_exact_vectors_are_kept(tmp_path):
    x = np.arange(1, 41, dtype=np.int8).reshape(10, 4)
    ids = 2**63 + np.arange(10, dtype=np.uint64) ** 3
    ix = shortlist.Index(dim=4, metric="ip", dtype="i8")
    ix.add(x, ids=ids)
    ix.save(tmp_path / "a.sl")
    again = shortlist.open(tmp_path / "a.sl")
    assert again.dtype == "i8"
    np.testing.assert_array_equal(again.get(ids[::-1]), x[::-1])
    np.testing.assert_array_equal(np.sort(again.search(x[0], k=10)[0]), ids)


def test_paths_of_any_kind(ready, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("ä b.sl", pathlib.Path("p.sl"), b"bytes.sl"):
        ready.save(path)
        assert len(shortlist.open(path)) == len(ready)
    with pytest.raises(ValueError, match="NUL"):
        ready.save("a\0b")
    with pytest.raises(TypeError):
        ready.save(7)


@pytest.mark.parametrize("place", ["map", "pmem", "dram"])
def test_a_tier_in_memory_changes_no_answer(place, ready, saved, q):
    for tier in ("auto", "none", "dram"):
        with shortlist.open(saved, place=place, tier=tier) as ix:
            for _ in range(20):
                for got, expected in zip(ix.search(q, k=10), ready.search(q, k=10)):
                    np.testing.assert_array_equal(got, expected)


def test_any_number_of_threads_copies_the_same(ready, saved, q):
    for threads in (0, 1, 3):
        with shortlist.open(saved, place="dram", threads=threads) as ix:
            for got, expected in zip(ix.search(q, k=10), ready.search(q, k=10)):
                np.testing.assert_array_equal(got, expected)
    with pytest.raises(ValueError, match="threads is -1"):
        shortlist.open(saved, place="dram", threads=-1)


def test_a_tier_needs_a_file_that_stays(ready, saved, tmp_path):
    ready.save(tmp_path / "room.sl", room=len(ready) + 10)
    with pytest.raises(shortlist.Error, match="tier none, or save it without room") as caught:
        shortlist.open(tmp_path / "room.sl", tier="dram")
    assert caught.value.status == "SL_EUNSUPPORTED"
    shortlist.open(tmp_path / "room.sl", tier="auto").close()
    with pytest.raises(ValueError, match="tier is 'disk'; it must be one of auto, none, dram"):
        shortlist.open(saved, tier="disk")


def test_a_mapped_index_is_read_only(saved, x):
    ix = shortlist.open(saved)
    assert ix.read_only
    with pytest.raises(shortlist.Error, match="read-only; open it with place='dram'") as caught:
        ix.add(x)
    assert caught.value.status == "SL_EREADONLY"
    with pytest.raises(shortlist.Error, match="no room to be written in place"):
        shortlist.open(saved, place="map", read_only=False)


def test_the_library_itself_refuses_to_add_to_a_map(saved, x):
    core = shortlist.open(saved)._core
    with pytest.raises(shortlist.Error) as caught:
        core.add(x, shortlist._core.DTYPES["f32"], None, None, None, 0, None, 0, 0, None)
    assert caught.value.status == "SL_EREADONLY"


def test_an_index_in_dram_takes_more(saved, q):
    more = clustered(100, seed=3)
    ix = shortlist.open(saved, place="dram")
    assert not ix.read_only
    ix.add(more)
    assert len(ix) == 2100
    np.testing.assert_array_equal(ix.get(2000), more[0])
    ix.check()
    ix.save(saved)
    assert len(shortlist.open(saved)) == 2100
    with pytest.raises(shortlist.Error, match="read-only"):
        shortlist.open(saved, place="dram", read_only=True).add(more)


def test_saving_over_the_file_it_is_mapped_from(saved, ready, q):
    ix = shortlist.open(saved)
    expected = ready.search(q)[0]
    ix.save(saved)
    np.testing.assert_array_equal(ix.search(q)[0], expected)
    np.testing.assert_array_equal(shortlist.open(saved).search(q)[0], expected)


def test_an_empty_index_is_saved_too(tmp_path, q):
    shortlist.Index(dim=DIM).save(tmp_path / "e.sl")
    for place in ("map", "dram"):
        ix = shortlist.open(tmp_path / "e.sl", place=place)
        assert len(ix) == 0
        assert (ix.search(q)[0] == shortlist.NO_ID).all()
        ix.check()


def test_opening_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.sl") as caught:
        shortlist.open(tmp_path / "nothing.sl")
    assert caught.value.filename == str(tmp_path / "nothing.sl")
    with pytest.raises(ValueError, match="place is 'disk'"):
        shortlist.open(tmp_path / "nothing.sl", place="disk")


def test_opening_what_is_no_index(tmp_path):
    for content in (b"", b"x" * 100, b"x" * 100_000):
        path = tmp_path / "other"
        path.write_bytes(content)
        with pytest.raises(shortlist.Error) as caught:
            shortlist.open(path)
        assert caught.value.status == "SL_EFORMAT" and "other" in str(caught.value)


def test_opening_a_damaged_header(saved):
    content = bytearray(saved.read_bytes())
    content[100] ^= 1
    saved.write_bytes(content)
    for place in ("map", "dram"):
        with pytest.raises(shortlist.Error) as caught:
            shortlist.open(saved, place=place)
        assert caught.value.status in ("SL_ECORRUPT", "SL_EVERSION")


def test_a_truncated_file_is_refused(saved):
    content = saved.read_bytes()
    for size in (1, 64, 4096, len(content) // 2, len(content) - 1):
        saved.write_bytes(content[:size])
        with pytest.raises(shortlist.Error) as caught:
            shortlist.open(saved)
        assert caught.value.status in ("SL_ECORRUPT", "SL_EFORMAT")


def test_snapshot(saved, tmp_path):
    copy = tmp_path / "copy.sl"
    copy.write_bytes(b"old")
    shortlist.snapshot(saved, copy)
    assert copy.read_bytes() == saved.read_bytes()
    with pytest.raises(ValueError, match="is the index itself"):
        shortlist.snapshot(saved, saved)
    with pytest.raises(FileNotFoundError):
        shortlist.snapshot(tmp_path / "none.sl", copy)
    assert copy.read_bytes() == saved.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["copy.sl", "items.sl"]


def test_scrub_of_a_file_that_never_changes(saved):
    report = shortlist.open(saved).check(scrub=True)
    assert (report.records_checked, report.bad_records, report.bad_ids) == (0, 0, [])


def test_check_finds_damage(saved):
    content = bytearray(saved.read_bytes())
    for place in range(8192, len(content), 997):
        content[place] ^= 0x55
    saved.write_bytes(content)
    with pytest.raises(shortlist.Error) as caught:
        shortlist.open(saved).check()
    assert caught.value.status == "SL_ECORRUPT"
    assert caught.value.report is not None and caught.value.report.n == 2000
    with pytest.raises(shortlist.Error):
        shortlist.open(saved, place="dram")


def test_saving_where_nothing_can_be_written(ready, tmp_path):
    with pytest.raises(OSError, match="no/such"):
        ready.save(tmp_path / "no/such/folder.sl")
    with pytest.raises(OSError):
        ready.save(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("room", [0, 500])
@pytest.mark.parametrize("place", ["dram", "map", "pmem"])
def test_layouts(ready, tmp_path, q, place, room):
    found = []
    for layout in ("arrays", "records"):
        path = tmp_path / layout
        ready.save(path, room=room and len(ready) + room, layout=layout)
        opened = shortlist.open(path, place=place)
        assert opened.stats()["layout"] == (layout if place != "dram" else "arrays")
        found.append(opened.search(q, k=10))
        opened.check(scrub=True)
    np.testing.assert_array_equal(found[0], found[1])
    with pytest.raises(ValueError, match="layout"):
        ready.save(tmp_path / "other", layout="rows")


@pytest.mark.parametrize("room", [0, 4000])
def test_rebuild(room, ready, q, tmp_path):
    path = tmp_path / "items.sl"
    ready.save(path, room=room)
    with shortlist.open(path, read_only=False) if room else shortlist.open(path, place="dram", exclusive=True) as ix:
        ix.delete(range(0, 500))
        if room:
            ix.sync()
        else:
            ix.save(path)
        with pytest.raises(shortlist.Error) as caught:
            shortlist.rebuild(path)
        assert caught.value.status == "SL_EBUSY"
    reader = shortlist.open(path)
    before = reader.search(q, k=10)
    fresh = shortlist.merge([reader], threads=1)
    report = shortlist.rebuild(path, threads=1)
    # A save of an index in memory has left out the places of deleted vectors.
    assert (report.n, report.deleted, report.room) == (1500, 500 if room else 0, room)
    assert (report.layout, report.linked_from) == ("arrays", "i8") and report.bytes_after < report.bytes_before
    for got, expected in zip(reader.search(q, k=10), before):
        np.testing.assert_array_equal(got, expected)
    after = shortlist.open(path)
    assert len(after) == 1500 and after.stats()["deleted"] == 0 and after.stats()["room"] == room
    for got, expected in zip(after.search(q, k=10), fresh.search(q, k=10)):
        np.testing.assert_array_equal(got, expected)
    assert shortlist.rebuild(path, output=tmp_path / "b.sl", m=4, ef_build=50, room=5000).room == 5000
    assert shortlist.open(tmp_path / "b.sl").stats()["m"] == 4
    # Handles that search a file with room have a table beside it.
    assert sorted(set(os.listdir(tmp_path)) - {"items.sl.readers"}) == ["b.sl", "items.sl"]


def test_rebuilds_that_cannot_be(saved, tmp_path):
    content = saved.read_bytes()
    with pytest.raises(FileNotFoundError):
        shortlist.rebuild(tmp_path / "none.sl")
    with pytest.raises(shortlist.Error):
        shortlist.rebuild(saved, progress=lambda done, total: True)
    with pytest.raises(ValueError, match="m is 1"):
        shortlist.rebuild(saved, m=1)
    with pytest.raises(ValueError, match="builder"):
        shortlist.rebuild(saved, builder="none")  # type: ignore[arg-type]
    assert saved.read_bytes() == content and os.listdir(tmp_path) == ["items.sl"]
