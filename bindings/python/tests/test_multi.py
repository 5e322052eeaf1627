"""Ids of several vectors."""

from pathlib import Path

import numpy as np
import pytest

import shortlist

N, DIM, IDS, K = 2000, 16, 400, 10
x = np.random.default_rng(7).standard_normal((N + 20, DIM), np.float32)
x, queries = x[:N], x[N:]
ids = np.random.default_rng(8).integers(0, IDS, N).astype(np.uint64)


def made(**options: bool) -> shortlist.Index:
    ix = shortlist.Index(DIM, metric="l2", codes="f32", multi=True, **options)
    ix.add(x, ids)
    return ix


def truth(query: np.ndarray, left: np.ndarray) -> np.ndarray:
    """All ids of the rows that are left, each once, best first."""
    order = np.argsort(((x[left] - query) ** 2).sum(1), kind="stable")
    near = ids[left][order]
    return near[np.sort(np.unique(near, return_index=True)[1])]


def recall(ix: shortlist.Index, left: np.ndarray, **options: object) -> float:
    found, scores = ix.search(queries, K, ef=200, **options)  # type: ignore[arg-type]
    assert all(len(set(row)) == K for row in found.tolist())
    assert (np.diff(scores, axis=1) >= 0).all()
    return float(np.mean([np.isin(row, truth(q, left)[:K]).mean() for q, row in zip(queries, found)]))


def test_different_ids_are_found() -> None:
    ix = made()
    assert ix.stats()["multi"] and len(ix) == N
    everything = np.ones(N, np.bool_)
    assert recall(ix, everything) > 0.95
    odd = np.arange(IDS) % 2 == 1
    assert recall(ix, odd[ids], filter=odd) > 0.95
    assert sorted(ix.ids()) == sorted(set(ids.tolist()))
    ix.delete(np.unique(ids[ids % 4 == 0]))
    assert recall(ix, ids % 4 != 0) > 0.95
    assert 4 not in ix and 5 in ix
    ix.add(x[:1], [4])
    assert 4 in ix and len(ix.get_all(4)) == 1


def test_vectors_of_an_id(tmp_path: Path) -> None:
    ix = made()
    ix.save(tmp_path / "x.sl")
    for index in (ix, shortlist.open(tmp_path / "x.sl")):
        got = index.get_all(ids[0])
        wanted = x[ids == ids[0]]
        assert got.dtype == np.float32 and len(wanted) > 1
        assert sorted(map(tuple, got)) == sorted(map(tuple, wanted))
        with pytest.raises(shortlist.Error, match="get_all") as refused:
            index.get(ids[0])
        assert refused.value.status == "SL_EUNSUPPORTED"
        with pytest.raises(KeyError, match="401"):
            index.get_all(401)
        with pytest.raises(ValueError, match="one id"):
            index.get_all([1, 2])  # type: ignore[arg-type]
        with pytest.raises(shortlist.Error, match="several vectors"):
            index.similar(ids[0])


def test_other_questions() -> None:
    ix = made()
    pages = np.concatenate([page for page, _ in ix.iterate(queries[0], page=30)])
    assert sorted(pages) == sorted(set(ids.tolist()))
    lims, found, _ = ix.range_search(queries[0], np.inf, exact=True)
    assert sorted(found) == sorted(ids) and lims[-1] == N


def test_one_vector_an_id_is_the_default() -> None:
    ix = shortlist.Index(DIM)
    ix.add(x[:2])
    assert not ix.stats()["multi"] and len(ix.get_all(1)) == 1
    with pytest.raises(ValueError, match="already"):
        ix.add(x[:1], [1])
