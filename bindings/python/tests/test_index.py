"""An index made, filled and asked; its settings and its results against exact search."""

from __future__ import annotations

import copy
import inspect
import importlib.metadata
import pickle
import warnings

import numpy as np
import pytest
from conftest import DIM, Matrix, clustered, recall, whole_numbers

import shortlist

REFINES = {
    "i8": ["none", "f32", "bf16", "i16"],
    "i16": ["none", "f32", "bf16", "i16"],
    "f32": ["none"],
    "i4": ["none", "f32", "i16"],
}


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@pytest.mark.parametrize("codes, refine", [(c, r) for c, rs in REFINES.items() for r in rs])
def test_finds_what_exact_search_finds(metric, codes, refine, x, q):
    ix = shortlist.Index(dim=DIM, metric=metric, codes=codes, refine=refine)
    ix.add(x)
    ids, scores = ix.search(q, k=10, ef=200)
    true_ids, true_scores = shortlist.exact(x, q, k=10, metric=metric)
    assert recall(ids, true_ids) >= 0.95
    order = np.sort(scores, axis=1)
    np.testing.assert_array_equal(scores, order if metric == "l2" else order[:, ::-1])
    np.testing.assert_allclose(scores, true_scores, rtol=0.05, atol=0.05 * float(np.abs(true_scores).max()))
    ix.check()


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@pytest.mark.parametrize("name, dtype", [("i8", np.int8), ("u8", np.uint8), ("i16", np.int16)])
@pytest.mark.parametrize("codes", [None, "i4"])
def test_integers_are_kept_exactly(metric, name, dtype, codes):
    x, q = whole_numbers(1500, dtype), whole_numbers(50, dtype, seed=2)
    ix = shortlist.Index(dim=DIM, metric=metric, dtype=name, codes=codes)
    assert ix.codes == (codes or ("i16" if name == "i16" else "i8"))
    ix.add(x)
    np.testing.assert_array_equal(ix.get(np.arange(len(x))), x)
    ids, scores = ix.search(q, k=10, ef=200)
    assert recall(ids, shortlist.exact(x, q, k=10, metric=metric)[0]) >= 0.95
    wide_x, wide_q = x[ids.astype(np.int64)].astype(np.int64), q[:, np.newaxis, :].astype(np.int64)
    if metric == "l2":
        expected = ((wide_x - wide_q) ** 2).sum(-1).astype(np.float32)
    else:
        expected = (wide_x * wide_q).sum(-1).astype(np.float32)
    if metric == "cosine":
        norms = np.linalg.norm(wide_x.astype(float), axis=-1) * np.linalg.norm(wide_q.astype(float), axis=-1)
        np.testing.assert_allclose(scores, (wide_x * wide_q).sum(-1) / norms, rtol=1e-6, atol=1e-7)
    else:
        np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_floating_point_types_mix(dtype, x, q):
    ix = shortlist.Index(dim=DIM, dtype=dtype)
    assert ix.dtype == "f32"  # stands for all three
    ix.add(x[:1000].astype(np.float16))
    ix.add(x[1000:])
    assert recall(ix.search(q.astype(np.float16), ef=200)[0], shortlist.exact(x, q, 10, "cosine")[0]) >= 0.95


def test_bfloat16(x, q):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    ix = shortlist.Index(dim=DIM, dtype=bfloat16, codes="f32")
    ix.add(x.astype(bfloat16))
    np.testing.assert_array_equal(ix.get(np.arange(len(x))), x.astype(bfloat16).astype(np.float32))
    ids, _ = ix.search(q.astype(bfloat16), k=10, ef=200)
    true_ids, _ = shortlist.exact(x.astype(bfloat16), q.astype(bfloat16), k=10, metric="cosine")
    assert recall(ids, true_ids) >= 0.95


@pytest.mark.parametrize("name", ["i8", "int8", np.int8, np.dtype("int8")])
def test_element_types_go_by_any_of_their_names(name):
    assert shortlist.Index(4, dtype=name).dtype == "i8"


def test_ids_are_the_users(x, q):
    ids = np.arange(len(x), dtype=np.uint64) * 7 + (2**64 - 2 - 7 * len(x))
    ix = shortlist.Index(dim=DIM)
    ix.add(x, ids=ids)
    plain = shortlist.Index(dim=DIM)
    plain.add(x)
    found, _ = ix.search(q, k=10)
    np.testing.assert_array_equal(found, ids[plain.search(q, k=10)[0].astype(np.int64)])
    assert found.dtype == np.uint64 and found.max() > 2**63


def test_ids_go_on_from_the_largest(x):
    ix = shortlist.Index(dim=DIM, codes="f32")
    ix.add(x[:2], ids=[5, 3])
    ix.add(x[2:4])
    np.testing.assert_array_equal(ix.get([5, 3, 6, 7]), x[:4])


def test_ids_as_lists_of_any_whole_numbers(x):
    ix = shortlist.Index(dim=DIM, codes="f32")
    ix.add(x[:3], ids=[1, 2**63 + 1, np.int8(7)])
    np.testing.assert_array_equal(ix.get(2**63 + 1), x[1])
    np.testing.assert_array_equal(ix.get([7, 1]), x[[2, 0]])
    assert ix.get([]).shape == (0, DIM)
    assert ix.get(np.empty(0, np.int32)).shape == (0, DIM)


def test_length_grows(x):
    ix = shortlist.Index(dim=DIM)
    assert len(ix) == 0
    ix.add(x[:10])
    ix.add(x[10:15])
    assert len(ix) == 15 == ix.stats()["n"]


def test_searching_an_empty_index(q):
    ix = shortlist.Index(dim=DIM)
    ids, scores = ix.search(q, k=3)
    assert ids.shape == scores.shape == (len(q), 3)
    assert (ids == shortlist.NO_ID).all() and shortlist.NO_ID == 2**64 - 1
    assert np.isnan(scores).all()


def test_rows_are_filled_after_the_last_result(x, q):
    ix = shortlist.Index(dim=DIM)
    ix.add(x[:4])
    ids, scores = ix.search(q, k=6)
    assert (np.sort(ids[:, :4], axis=1) == np.arange(4)).all() and not np.isnan(scores[:, :4]).any()
    assert (ids[:, 4:] == shortlist.NO_ID).all() and np.isnan(scores[:, 4:]).all()


def test_one_query_gives_one_row(ready, q):
    ids, scores = ready.search(q[0], k=5)
    assert ids.shape == scores.shape == (5,)
    assert ids.dtype == np.uint64 and scores.dtype == np.float32
    many_ids, many_scores = ready.search(q[:1], k=5)
    np.testing.assert_array_equal(ids, many_ids[0])
    np.testing.assert_array_equal(scores, many_scores[0])


def test_no_queries_give_no_rows(ready):
    ids, scores = ready.search(np.empty((0, DIM), np.float32), k=5)
    assert ids.shape == scores.shape == (0, 5)


def test_threads_do_not_change_results(ready, q):
    for threads in (0, 4):
        np.testing.assert_array_equal(ready.search(q, threads=threads)[0], ready.search(q, threads=1)[0])


def test_more_candidates_find_more(x, q):
    ix = shortlist.Index(dim=DIM, m=4, ef_build=20)
    ix.add(x)
    truth = shortlist.exact(x, q, k=10, metric="cosine")[0]
    assert recall(ix.search(q, ef=10)[0], truth) < recall(ix.search(q, ef=400)[0], truth)


def test_reranking_uses_the_finer_copy(x, q):
    ix = shortlist.Index(dim=DIM, metric="l2", refine="f32")
    ix.add(x)
    ids, scores = ix.search(q, k=1, ef=200, rerank=100)
    expected = ((x[ids[:, 0].astype(np.int64)].astype(float) - q) ** 2).sum(1)
    np.testing.assert_allclose(scores[:, 0], expected, rtol=1e-4)


def test_get_gives_the_vectors_back(x):
    tiers = [("f32", None, 0), ("i8", "f32", 0), ("i8", "bf16", 2**-8), ("i8", None, 2**-6), ("i4", None, 2**-8)]
    for codes, refine, error in tiers:
        ix = shortlist.Index(dim=DIM, metric="l2", codes=codes, refine=refine)
        ix.add(x)
        got = ix.get(np.arange(len(x)))
        assert got.dtype == np.float32 and got.shape == x.shape
        assert (np.abs(got - x) <= error * np.abs(x).max(axis=1, keepdims=True)).all()


def test_stats_say_how_it_was_made(x):
    ix = shortlist.Index(dim=DIM, metric="ip", codes="i16", refine="bf16", m=8, ef_build=50, seed=2**64 - 1)
    ix.add(x)
    stats = ix.stats()
    made = {k: stats[k] for k in ("n", "dim", "metric", "codes", "refine", "m", "ef_build", "seed", "dtype", "place")}
    assert made == {
        "n": len(x),
        "dim": DIM,
        "metric": "ip",
        "codes": "i16",
        "refine": "bf16",
        "m": 8,
        "ef_build": 50,
        "seed": 2**64 - 1,
        "dtype": "f32",
        "place": "dram",
    }
    assert stats["bytes_codes"] >= len(x) * DIM * 2 and stats["bytes_refine"] >= len(x) * DIM * 2
    # An index so small has no partitions.
    assert stats["bytes_partitions"] == stats["partitions"] == stats["groups"] == 0
    assert stats["bytes_per_vector"] == stats["bytes_total"] / len(x)
    assert 0 < stats["quant_error_mean"] <= stats["quant_error_max"] < 0.01
    assert stats["isa"] == shortlist.cpu()["isa"]
    assert (ix.dim, ix.metric, ix.dtype, ix.codes, ix.refine) == (DIM, "ip", "f32", "i16", "bf16")
    assert not ix.read_only and not ix.closed


@pytest.mark.parametrize(
    "codes, clip, share, kept",
    [
        ("i8", "auto", 0.01, "auto"),
        ("i8", "minmax", 0.01, "auto"),
        ("i8", "mse", 0.01, "mse"),
        ("i4", "mse", 0.01, "auto"),
        ("i4", "minmax", 0.01, "minmax"),
        ("i16", "quantile", 0.07, "quantile"),
        ("i4", "quantile", 0.07, "quantile"),
    ],
)
def test_clips_are_kept(codes, clip, share, kept, x, tmp_path):
    path = tmp_path / "x.sl"
    ix = shortlist.Index(dim=DIM, codes=codes, clip=clip, clip_share=share)
    ix.add(x)
    ix.save(path)
    with shortlist.open(path) as other:
        stats = other.stats()
    assert (stats["clip"], stats["clip_share"]) == (kept, share if kept == "quantile" else 0)
    assert stats["quant_error_mean"] == ix.stats()["quant_error_mean"]


def test_bounded_memory_gives_the_same_index(tmp_path):
    x = np.random.default_rng(3).standard_normal((6000, 32)).astype(np.float32)
    whole = shortlist.Index(dim=32)
    whole.add(x, builder="leaves", threads=2)
    whole.save(tmp_path / "whole.sl")
    work = tmp_path / "x.work"
    bounded = shortlist.Index(dim=32, max_memory=4 << 20, work_path=work)
    bounded.add(x, builder="leaves", threads=1)
    assert work.stat().st_size > 1000000
    bounded.save(tmp_path / "x.sl")
    assert not work.exists()
    assert (tmp_path / "x.sl").read_bytes() == (tmp_path / "whole.sl").read_bytes()
    small = shortlist.Index(dim=32, max_memory=100000)
    with pytest.raises(MemoryError, match="100000 are allowed"):
        small.add(x)
    with pytest.raises(OSError, match="check the path"):
        shortlist.Index(dim=32, work_path=tmp_path / "no" / "work")


def test_clips_change_the_error(x):
    errors = {}
    for clip in ("auto", "mse", "quantile"):
        ix = shortlist.Index(dim=DIM, codes="i8", clip=clip, clip_share=0.1)
        ix.add(x)
        errors[clip] = ix.stats()["quant_error_mean"]
    assert errors["mse"] < errors["auto"] < errors["quantile"]


def test_check_reports(ready):
    report = ready.check(sample=100, k=5, ef=100, threads=1)
    assert report.n == len(ready)
    assert report.bad_links == report.unreachable == report.duplicate_ids == report.bad_vectors == 0
    assert 0 < report.min_degree <= report.mean_degree <= report.max_degree <= 32
    assert report.sampled_recall >= 0.95
    assert np.isnan(ready.check(sample=0).sampled_recall)


def test_repr(ready):
    assert repr(ready) == (
        "<shortlist.Index dim=32, metric='cosine', dtype='f32', codes='i8', refine='f32': 2000 vectors>"
    )
    ix = shortlist.Index(3, "l2")
    ix.close()
    assert repr(ix) == "<shortlist.Index dim=3, metric='l2', dtype='f32', codes='i8': closed>"


def test_closing(x):
    with shortlist.Index(dim=DIM) as ix:
        ix.add(x[:10])
    assert ix.closed
    ix.close()
    calls = [
        lambda: ix.add(x),
        lambda: ix.search(x),
        lambda: ix.get(0),
        lambda: ix.save("nowhere"),
        lambda: ix.check(),
        lambda: ix.stats(),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="closed"):
            call()


def test_cannot_be_pickled_or_copied(ready):
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="save it to a file"):
            attempt(ready)


def test_exact_is_exact(x, q):
    ids, scores = shortlist.exact(x, q, k=7, metric="ip")
    products = q.astype(float) @ x.T.astype(float)
    np.testing.assert_array_equal(ids, np.argsort(-products, axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(scores, -np.sort(-products, axis=1)[:, :7], rtol=1e-6)
    one_ids, one_scores = shortlist.exact(x, q[3], k=7, metric="ip")
    np.testing.assert_array_equal(one_ids, ids[3])
    np.testing.assert_array_equal(one_scores, scores[3])


def test_exact_and_an_index_have_one_default_metric(x, q):
    defaults = [inspect.signature(made).parameters["metric"].default for made in (shortlist.Index, shortlist.exact)]
    assert defaults == ["cosine", "cosine"] and shortlist.Index(dim=DIM).metric == "cosine"
    for mine, named in zip(shortlist.exact(x, q, k=7), shortlist.exact(x, q, k=7, metric="cosine")):
        np.testing.assert_array_equal(mine, named)
    assert not np.array_equal(shortlist.exact(x, q, k=7)[0], shortlist.exact(x, q, k=7, metric="ip")[0])


def test_exact_fills_and_breaks_ties_by_row():
    x = np.ones((3, 4), np.int8)
    ids, scores = shortlist.exact(x, x[:1], k=5, metric="l2")
    assert ids.tolist() == [[0, 1, 2, shortlist.NO_ID, shortlist.NO_ID]]
    assert scores[0, :3].tolist() == [0, 0, 0] and np.isnan(scores[0, 3:]).all()
    ids, _ = shortlist.exact(x[:0], x[:1], k=2)
    assert (ids == shortlist.NO_ID).all()


def test_exact_of_different_types_compares_floats():
    x, q = clustered(50), clustered(3, seed=2)
    expected = shortlist.exact(x, q, k=5)[0]
    np.testing.assert_array_equal(shortlist.exact(x.astype(float), q, k=5)[0], expected)
    np.testing.assert_array_equal(shortlist.exact([[1, 2], [3, 4]], np.array([1, 1], np.int8), k=2)[0], [1, 0])


def test_cpu_says_what_runs():
    system = shortlist.cpu()
    assert system["isa"] in system["isa_available"]
    assert "scalar" in system["isa_available"]
    assert system["cpus"] >= 1 and 1 <= system["max_threads"] <= system["most_threads"] and system["page_size"] >= 4096


def test_version():
    assert shortlist.__version__ == importlib.metadata.version("shortlist")


def test_builders(tmp_path):
    rows, asked = clustered(5000), clustered(50, seed=2)
    files = []
    for builder, threads in ("leaves", 1), ("leaves", 2), ("auto", 2), ("insert", 1):
        ix = shortlist.Index(dim=DIM, metric="l2")
        ix.add(rows, threads=threads, builder=builder)
        ix.save(tmp_path / "x.sl")
        files.append((tmp_path / "x.sl").read_bytes())
        assert recall(ix.search(asked, k=10, ef=200)[0], shortlist.exact(rows, asked, k=10, metric="l2")[0]) >= 0.95
    assert files[0] == files[1] == files[2] != files[3]


def test_merge(x, tmp_path):
    first, second = shortlist.Index(dim=DIM, tags=True), shortlist.Index(dim=DIM, tags=True)
    half = len(x) // 2
    first.add(x[:half], tags=range(half))
    second.add(x[half:], ids=range(half, len(x)), tags=range(half, len(x)))
    first.delete([3])
    second.save(tmp_path / "b.sl")
    both = shortlist.merge(iter([first, shortlist.open(tmp_path / "b.sl")]), threads=1)
    assert len(both) == len(x) - 1 and 3 not in both and both.stats()["deleted"] == 0
    assert both.get_tags(half + 4) == half + 4
    np.testing.assert_array_equal(both.get([5, half]), [first.get(5), second.get(half)])
    both.add(x[:1])  # ids go on above the largest
    assert len(x) in both
    assert both.check().sampled_recall >= 0.95 and both.check().sampled_lost == 0

    fresh = shortlist.merge([first], m=4, ef_build=50)
    assert (fresh.stats()["m"], fresh.stats()["ef_build"]) == (4, 50)


def test_merges_that_cannot_be(x):
    ix, other = shortlist.Index(dim=DIM), shortlist.Index(dim=DIM, metric="l2")
    ix.add(x)
    with pytest.raises(ValueError, match="id 0 is in index 0 and in index 1"):
        shortlist.merge([ix, ix])
    assert len(shortlist.merge([ix, ix], clash="later")) == len(ix)
    with pytest.raises(ValueError, match="different metrics"):
        shortlist.merge([ix, other])
    with pytest.raises(ValueError, match="no indexes"):
        shortlist.merge([])
    with pytest.raises(ValueError, match="clash"):
        shortlist.merge([ix], clash="earlier")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="hold int"):
        shortlist.merge([1])  # type: ignore[list-item]
    with pytest.raises(shortlist.Error, match="cancelled"):
        shortlist.merge([ix], progress=lambda done, total: True)
    other.close()
    with pytest.raises(ValueError, match="closed"):
        shortlist.merge([other])


def test_a_builder_that_does_not_serve(x):
    ix = shortlist.Index(dim=DIM, metric="l2")
    with pytest.raises(ValueError, match="builder"):
        ix.add(x, builder="hnsw")  # type: ignore[arg-type]
    with pytest.raises(shortlist.Error, match="builder leaves needs 4,096 vectors or more; take builder auto"):
        ix.add(x, builder="leaves")
    assert len(ix) == 0


def test_a_plan_tells_what_a_build_takes(tmp_path):
    rows = np.random.default_rng(4).standard_normal((6000, 24), np.float32)
    ix = shortlist.Index(dim=24, codes="i4", refine="f32", tags=True)
    plan = ix.plan(len(rows), threads=1)
    assert plan.builder == "leaves" and plan.bytes_peak_alike >= plan.bytes_peak >= plan.bytes_index
    assert ix.plan(len(rows), builder="insert").builder == ix.plan(100).builder == "insert"
    assert len(ix) == 0
    ix.add(rows, tags=np.arange(len(rows)), threads=1)
    ix.save(tmp_path / "a.sl")
    size = (tmp_path / "a.sl").stat().st_size
    assert 0.99 * plan.bytes_file <= size <= plan.bytes_file
    assert ix.plan(len(rows), threads=1) == plan  # of a new index
    ix.save(tmp_path / "room.sl", room=9000, layout="records")
    roomy = ix.plan(len(rows), room=9000, layout="records").bytes_file
    assert 0.99 * roomy <= (tmp_path / "room.sl").stat().st_size <= roomy

    with pytest.raises(ValueError, match="opened or merged"):
        shortlist.open(tmp_path / "a.sl").plan(10)
    with pytest.raises(ValueError, match="room"):
        ix.plan(10, room=5)
    with pytest.raises(ValueError, match="holds up to"):
        ix.plan(2**50)
    assert ix.plan(0).bytes_file > 0
    ix.close()
    with pytest.raises(ValueError, match="closed"):
        ix.plan(10)


def test_codes_that_lose_the_nearest_are_told():
    rng = np.random.default_rng(3)
    city = np.array([48.85, 2.35], "f") + 0.1 * rng.uniform(-1, 1, (3000, 2)).astype("f")
    truth, _ = shortlist.exact(city, city[:200], k=10, metric="l2")
    for codes, lossy in (("f32", False), ("i8", True), ("i16", True), ("i4", True)):
        index = shortlist.Index(2, "l2", codes)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            index.add(city)
        assert [w.filename for w in told] == [__file__] * lossy
        assert all("which changes no distance" in str(w.message) for w in told)
        report = index.check()
        assert (report.unresolved > report.resolution_sampled / 2) == lossy
        found, _ = index.search(city[:200], k=10, ef=64)
        recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.tolist(), truth.tolist())])
        assert lossy or recall >= 0.99
    streamed = shortlist.Index(2, "l2", "i8")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for some in np.split(city, 30):
            streamed.add(some)
    assert len(told) == 2  # of 1,000 and of 2,000 vectors
    centred = shortlist.Index(2, "l2", "i16")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centred.add(city - city.mean(axis=0))
