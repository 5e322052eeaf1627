"""Every layout an array of numpy's can have gives what its dense copy gives."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DIM, clustered

import shortlist


def padded(x):
    wide = np.full((len(x), x.shape[1] + 3), np.nan, x.dtype)
    wide[:, : x.shape[1]] = x
    return wide[:, : x.shape[1]]


def every_other_column(x):
    wide = np.full((len(x), 2 * x.shape[1]), np.nan, x.dtype)
    wide[:, ::2] = x
    return wide[:, ::2]


def every_other_row(x):
    return np.repeat(x, 2, axis=0)[::2]


def read_only(x):
    x = x.copy()
    x.setflags(write=False)
    return x


def unaligned(x):
    raw = np.zeros(x.nbytes + 1, np.uint8)
    out = raw[1:].view(x.dtype).reshape(x.shape)
    out[:] = x
    assert not out.flags.aligned
    return out


def a_field(x):
    records = np.zeros(len(x), [("tag", "u1"), ("vector", x.dtype, (x.shape[1],))])
    records["vector"] = x
    return records["vector"]


class Holder:
    """Stand-ins that look like pandas and torch to numpy."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


LAYOUTS = {
    "padded rows": padded,
    "every other column": every_other_column,
    "every other row": every_other_row,
    "fortran": np.asfortranarray,
    "reversed": lambda x: x[::-1].copy()[::-1],
    "mirrored": lambda x: x[:, ::-1].copy()[:, ::-1],
    "read-only": read_only,
    "other endian": lambda x: x.astype(x.dtype.newbyteorder()),
    "float64": lambda x: x.astype(np.float64),
    "long double": lambda x: x.astype(np.longdouble),
    "unaligned": unaligned,
    "a field": a_field,
    "array-like": Holder,
    "lists": lambda x: x.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_layouts_of_vectors(layout, x, q):
    x, q = x[:300], q[:20]
    dense, other = (shortlist.Index(dim=DIM, codes="f32") for _ in range(2))
    dense.add(x, threads=1)
    other.add(layout(x), threads=1)
    np.testing.assert_array_equal(other.get(np.arange(len(x))), x)
    expected_ids, expected_scores = dense.search(q)
    for ids, scores in (other.search(layout(q)), dense.search(layout(q))):
        np.testing.assert_array_equal(ids, expected_ids)
        np.testing.assert_array_equal(scores, expected_scores)
    np.testing.assert_array_equal(other.search(np.asarray(layout(q))[3])[0], expected_ids[3])
    for a, b in zip(shortlist.exact(layout(x), layout(q), k=5), shortlist.exact(x, q, k=5)):
        np.testing.assert_array_equal(a, b)


def test_the_same_row_many_times():
    one = clustered(1)[0]
    ix = shortlist.Index(dim=DIM, codes="f32")
    ix.add(np.broadcast_to(one, (5, DIM)))
    np.testing.assert_array_equal(ix.get(range(5)), np.tile(one, (5, 1)))


def test_overlapping_rows():
    signal = np.arange(1, 12, dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(signal, 4)
    ix = shortlist.Index(dim=4, codes="f32")
    ix.add(windows)
    np.testing.assert_array_equal(ix.get(range(len(windows))), windows)


def test_rows_apart_are_not_copied(x, monkeypatch):
    """The library reads the caller's memory: no array as large as the input is made on the way."""
    from shortlist import _arrays

    for array in (x, padded(x), every_other_row(x), read_only(x), x[5:, :]):
        taken, dtype, _ = _arrays.rows("x", array, DIM, "f32")
        assert np.shares_memory(taken, array) and dtype == "f32"
    taken, _, _ = _arrays.rows("x", np.asfortranarray(x), DIM, "f32")
    assert not np.shares_memory(taken, x)


def test_one_column():
    x = np.arange(1, 9, dtype=np.float32).reshape(8, 1)
    ix = shortlist.Index(dim=1, metric="l2", codes="f32")
    ix.add(x[::2])
    ix.add(np.asfortranarray(x[1::2]))
    np.testing.assert_array_equal(ix.get(range(8)), np.concatenate([x[::2], x[1::2]]))
    assert ix.search([[5.2]], k=1)[0].tolist() == [[2]]


def test_zero_rows(x):
    ix = shortlist.Index(dim=DIM)
    for nothing in (np.empty((0, DIM), np.float32), np.empty((0, DIM)), x[:0], np.asfortranarray(x)[:0]):
        ix.add(nothing)
        ix.add(nothing, ids=[])
    assert len(ix) == 0
    ix.add(x[:3])
    ix.add(x[:0])
    assert len(ix) == 3


def test_whole_numbers_in_a_floating_point_index(x):
    whole = np.rint(x * 20)
    for dtype in (np.int8, np.int16, np.int64, np.uint8):
        ix = shortlist.Index(dim=DIM, codes="f32", metric="l2")
        taken = (np.abs(whole) % 120).astype(dtype)
        ix.add(taken)
        np.testing.assert_array_equal(ix.get(np.arange(len(x))), taken.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, np.int64])
def test_an_integer_index_takes_its_own_type_only(dtype):
    ix = shortlist.Index(dim=4, dtype="i8")
    with pytest.raises(ValueError, match=r"x holds .* keeps int8 exactly .* astype\(np.int8\)"):
        ix.add(np.ones((2, 4), dtype))
    ix.add(np.ones((2, 4), np.int8))
    with pytest.raises(ValueError, match="q holds"):
        ix.search(np.ones((1, 4), dtype))
    assert ix.get([1]).dtype == np.int8


@pytest.mark.parametrize(
    "array, message",
    [
        (np.ones(DIM, np.float32), r"x has shape \(32,\)"),
        (np.ones((2, 3, DIM), np.float32), r"x has shape \(2, 3, 32\)"),
        (np.float32(1), r"x has shape \(\)"),
        (np.ones((2, DIM + 1), np.float32), "dimension 33, where 32 is needed"),
        (np.ones((2, 0), np.float32), "dimension 0, where 32 is needed"),
        (np.ones((2, DIM), complex), "x holds complex128"),
        (np.ones((2, DIM), bool), "x holds bool"),
        (np.full((2, DIM), "a"), "x holds <U1"),
        (np.full((2, DIM), None), "x holds object"),
    ],
)
def test_arrays_that_are_no_vectors(array, message):
    ix = shortlist.Index(dim=DIM)
    with pytest.raises(ValueError, match=message):
        ix.add(array)
    assert len(ix) == 0


@pytest.mark.parametrize("array", [np.ones((1, 1, DIM)), np.ones(DIM - 1), np.ones((1, DIM - 1))])
def test_queries_that_are_none(ready, array):
    with pytest.raises(ValueError, match="q has"):
        ready.search(array)
    with pytest.raises(ValueError, match="q has"):
        shortlist.exact(clustered(3), array)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_values_that_are_no_numbers(bad, x):
    ix = shortlist.Index(dim=DIM)
    rows = x[:10].astype(np.float64)
    rows[7, 3] = bad
    with pytest.raises(ValueError, match="7"):
        ix.add(rows)
    assert len(ix) == 0
    ix.add(x[:10])
    with pytest.raises(ValueError, match="7"):
        ix.search(rows)
    with pytest.raises(ValueError, match="7"):
        shortlist.exact(rows, x[:2])


def test_a_zero_vector_has_no_cosine(x):
    rows = x[:10].copy()
    rows[4] = 0
    with pytest.raises(ValueError, match="4"):
        shortlist.Index(dim=DIM, metric="cosine").add(rows)
    for metric in ("ip", "l2"):
        shortlist.Index(dim=DIM, metric=metric).add(rows)


@pytest.mark.parametrize(
    "ids, message",
    [
        ([1, 2], r"ids have shape \(2,\), but x has 3 rows"),
        ([[1], [2], [3]], r"ids have shape \(3, 1\)"),
        ([1, -2, 3], "ids hold -2"),
        (np.array([1, -2, 3], np.int8), "ids hold -2"),
        ([1, 2**64, 3], "ids hold 18446744073709551616"),
        ([1.0, 2.0, 3.0], "ids hold 1.0"),
        (np.ones(3), "ids hold float64"),
        (["a", "b", "c"], "ids hold 'a'"),
        ([1, 2, 1], "1"),
        ([1, 2, 900], "900"),
        ([1, 2, 2**64 - 1], "18446744073709551615|SL_NO_ID|reserved"),
    ],
)
def test_ids_that_are_none(ids, message, x):
    ix = shortlist.Index(dim=DIM)
    ix.add(x[:1], ids=[900])
    with pytest.raises(ValueError, match=message):
        ix.add(x[:3], ids=ids)
    assert len(ix) == 1


def test_masked_arrays_are_refused(ready, q):
    """NumPy would drop their masks without a word."""
    mask = np.ma.MaskedArray(q, mask=np.zeros(q.shape, bool))
    ix = shortlist.Index(dim=q.shape[1])
    ids = np.ma.arange(len(q))
    for call in (
        lambda: ix.add(mask),
        lambda: ix.add(q, ids=ids),
        lambda: ready.search(mask),
        lambda: ready.search(mask[0]),
        lambda: ready.search(q, filter=ids),
        lambda: ready.search(q, filter=np.ma.MaskedArray([True, False])),
        lambda: ready.get(ids),
        lambda: shortlist.exact(mask, q, k=1),
    ):
        with pytest.raises(ValueError, match="masked array"):
            call()
    assert len(ix) == 0
