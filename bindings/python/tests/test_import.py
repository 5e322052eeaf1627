"""Indexes of other libraries' files."""

from pathlib import Path

import numpy as np
import pytest

import shortlist
import shortlist.compat.hnswlib as hnswlib

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden" / "foreign"
HNSWLIB, FAISS, CODED = (GOLDEN / f"{name}" for name in
                         ("hnswlib-0.8.0.bin", "faiss-1.15.1-hnsw-flat.faiss", "faiss-1.15.1-hnsw-sq8.faiss"))
pytestmark = pytest.mark.skipif(not GOLDEN.exists(), reason="the tests run away from the project's tree")
N, DIM, GONE = 240, 6, 20
ids = np.arange(N, dtype=np.uint64) * 10 + 5
x = (((np.arange(N * DIM, dtype=np.uint64) * 2654435761 >> 7) % 1000).astype(np.float32) / 500 - 1).reshape(N, DIM)


def test_hnswlib() -> None:
    ix = shortlist.import_hnswlib(HNSWLIB, metric="l2")
    stats = ix.stats()
    assert (len(ix), stats["deleted"], stats["m"], stats["ef_build"]) == (N - GONE, GONE, 4, 40)
    assert (ix.codes, ix.refine, ix.metric) == ("i8", "bf16", "l2")
    found, _ = ix.search(x[GONE:], k=1, ef=60)
    assert np.mean(found[:, 0] == ids[GONE:]) > 0.98
    ix.undelete(ids[:1])
    assert int(ids[0]) in ix
    ix.check()


def test_faiss() -> None:
    ix = shortlist.import_faiss(FAISS, codes="f32")
    assert (ix.refine, ix.metric) == ("none", "l2")
    assert np.array_equal(ix.get(ids), x)
    assert np.array_equal(ix.search(x, k=1, ef=60)[0][:, 0], ids)
    coded = shortlist.import_faiss(CODED, codes="f32")
    decoded = np.fromfile(GOLDEN / "decoded.f32", np.float32)[: N * DIM].reshape(N, DIM)
    assert np.allclose(coded.get(np.arange(N)), decoded, atol=1e-6)


def test_refuses(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        shortlist.import_faiss(tmp_path / "none.faiss")
    for call, text in (
        (lambda: shortlist.import_hnswlib(FAISS, metric="l2"), "no index of hnswlib"),
        (lambda: shortlist.import_faiss(HNSWLIB), "no index of Faiss"),
    ):
        with pytest.raises(shortlist.Error, match=text) as caught:
            call()
        assert caught.value.status == "SL_EFORMAT"
    for wrong in (
        lambda: shortlist.import_hnswlib(HNSWLIB, metric="l2", dim=7),
        lambda: shortlist.import_hnswlib(HNSWLIB, metric="cos"),  # type: ignore[arg-type]
        lambda: shortlist.import_faiss(FAISS, metric="ip"),
        lambda: shortlist.import_faiss(FAISS, codes="f32", refine="bf16"),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_hnswlib_by_its_own_class() -> None:
    index = hnswlib.Index("l2", DIM)
    index.load_index(HNSWLIB, allow_replace_deleted=True)
    assert (index.get_current_count(), index.get_max_elements(), index.M) == (N, N + 10, 4)
    assert sorted(index.get_ids_list()) == ids.tolist()
    assert np.array_equal(index.get_items(ids[GONE:]), x[GONE:])
    with pytest.raises(RuntimeError, match="already deleted"):
        index.mark_deleted(int(ids[3]))
    index.unmark_deleted(int(ids[3]))
    index.set_ef(60)
    assert index.knn_query(x[3])[0][0, 0] == ids[3]
    index.add_items(x[:5], np.arange(5), replace_deleted=True)
    assert index.get_current_count() == N
