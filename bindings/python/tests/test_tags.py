"""Tags and keys of vectors: set, kept, and searched by."""

from __future__ import annotations

import numpy as np
import pytest

import shortlist
from conftest import DIM

MOST = 2**64 - 1


@pytest.fixture
def words(x):
    rng = np.random.default_rng(5)
    tags, keys = rng.integers(0, 2**64, (2, len(x)), dtype=np.uint64)
    keys[3] = MOST
    return tags & np.uint64(0x8000_0000_0000_00FF), keys


@pytest.fixture
def tagged(x, words):
    ix = shortlist.Index(dim=DIM, tags=True, keys=True)
    ix.add(x, tags=words[0], keys=words[1])
    return ix


def found(ix, q, **asked):
    ids, _ = ix.search(q[:3], k=len(ix), filter=shortlist.Filter(ix, **asked))
    ids = np.sort(ids, axis=1)
    assert (ids == ids[0]).all()
    return ids[0][ids[0] != shortlist.NO_ID]


def test_filters_by_tags_and_keys(tagged, words, x, q):
    tags, keys = words
    high = np.uint64(2**63)
    cases = [
        ({"any_tags": 6}, tags & 6 != 0),
        ({"all_tags": 2**63 + 1}, tags & (high | np.uint64(1)) == high | np.uint64(1)),
        ({"none_tags": 2**63}, tags & high == 0),
        ({"any_tags": 12, "all_tags": 1, "none_tags": 2}, (tags & 12 != 0) & (tags & 3 == 1)),
        ({"keys": (2**62, 2**63)}, (keys >= 2**62) & (keys <= 2**63)),
        ({"keys": (MOST, None)}, keys == MOST),
        ({"keys": (None, 2**61), "any_tags": 1}, (keys <= 2**61) & (tags & 1 != 0)),
        ({"any_tags": 1, "exclude": np.arange(0, 1000)}, (tags & 1 != 0) & (np.arange(len(x)) >= 1000)),
        ({"any_tags": 0, "keys": (0, MOST)}, np.ones(len(x), np.bool_)),
        ({"any_tags": 2**40}, np.zeros(len(x), np.bool_)),
    ]
    for asked, passes in cases:
        np.testing.assert_array_equal(found(tagged, q, **asked), np.flatnonzero(passes), str(asked))


@pytest.mark.parametrize("layout", ["arrays", "records"])
@pytest.mark.parametrize("place", ["map", "dram"])
def test_saved_and_opened(layout, place, tagged, words, tmp_path):
    path = tmp_path / "tagged.sl"
    tagged.save(path, layout=layout)
    with shortlist.open(path, place=place) as ix:
        ids = np.arange(len(ix))
        np.testing.assert_array_equal(ix.get_tags(ids), words[0])
        np.testing.assert_array_equal(ix.get_keys(ids), words[1])
        assert ix.get_keys(3) == MOST and ix.get_keys(3).shape == ()
        stats = ix.stats()
        assert stats["tags"] and stats["keys"] and stats["bytes_tags"] == stats["bytes_keys"] == 8 * len(ix)


def test_set_in_place(tagged, words, q, tmp_path):
    path = tmp_path / "tagged.sl"
    tagged.save(path, room=len(tagged) + 10)
    reader = shortlist.open(path)
    with shortlist.open(path, place="map", read_only=False) as writer:
        writer.add(q[:2], tags=[1, 2])
        writer.set_tags([5, 9, 5], [0, MOST, 2**40])
        writer.set_keys(7, 8)
        by_tag = shortlist.Filter(reader, any_tags=2**40)
        assert len(by_tag) == 0
        writer.sync()
        assert len(by_tag) == 0
        by_tag.refresh()
        assert len(by_tag) == 2
    np.testing.assert_array_equal(reader.get_tags([5, 9, 2000, 2001]), np.array([2**40, MOST, 1, 2], np.uint64))
    np.testing.assert_array_equal(reader.get_keys([7, 2000]), np.array([8, 0], np.uint64))
    reader.check()


def test_what_is_refused(tagged, ready, x, tmp_path):
    with pytest.raises(ValueError, match="no tags"):
        ready.get_tags([1])
    with pytest.raises(ValueError, match="no keys"):
        ready.set_keys([1], [1])
    with pytest.raises(ValueError, match="no tags"):
        shortlist.Filter(ready, any_tags=1)
    with pytest.raises(ValueError, match="no keys"):
        shortlist.Filter(ready, keys=(1, None))
    with pytest.raises(ValueError, match="no tags"):
        shortlist.Index(dim=DIM, keys=True).add(x[:2], tags=[1, 2])
    before = tagged.get_tags(np.arange(10))
    with pytest.raises(KeyError, match="99999"):
        tagged.set_tags([1, 99999], [5, 5])
    np.testing.assert_array_equal(tagged.get_tags(np.arange(10)), before)
    for wrong in ([1], [1, 2, 3], [-1, 2], [0.5, 1.5], [2**64, 1], [[1, 2]]):
        with pytest.raises(ValueError, match="tags"):
            tagged.set_tags([1, 2], wrong)
        with pytest.raises(ValueError, match="tags"):
            tagged.add(x[:2], tags=wrong)
    for wrong in ({"any_tags": -1}, {"all_tags": 2**64}, {"keys": (2, 1)}, {"keys": (1,)}, {"keys": (0, 2**64)}):
        with pytest.raises(ValueError, match=r"tags|key"):
            shortlist.Filter(tagged, **wrong)
    with pytest.raises(TypeError, match="none_tags"):
        shortlist.Filter(tagged, none_tags=1.5)
    tagged.save(tmp_path / "x.sl")
    with pytest.raises(shortlist.Error, match="read-only; open it .* to set tags") as refused:
        shortlist.open(tmp_path / "x.sl").set_tags(1, 1)
    assert refused.value.status == "SL_EREADONLY"
