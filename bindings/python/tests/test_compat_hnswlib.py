"""hnswlib's classes over Shortlist: their results, and their errors."""

import pathlib
import pickle
import warnings

import numpy as np
import pytest

import shortlist
import shortlist.compat.hnswlib as hnswlib

DIM, N = 12, 800
DATA = np.random.default_rng(4).random((N, DIM), dtype=np.float32) - np.float32(0.5)


def make(space="l2", n=N, **options):
    index = hnswlib.Index(space, DIM)
    index.init_index(max_elements=n, **options)
    return index


def filled(space="l2", **options):
    index = make(space, **options)
    index.add_items(DATA)
    index.set_ef(200)
    return index


def true_distances(space, queries):
    if space == "l2":
        return ((queries[:, None] - DATA[None]) ** 2).sum(2)
    if space == "ip":
        return 1 - queries @ DATA.T
    unit = DATA / np.linalg.norm(DATA, axis=1)[:, None]
    return 1 - (queries / np.linalg.norm(queries, axis=1)[:, None]) @ unit.T


@pytest.mark.parametrize("space", ["l2", "ip", "cosine"])
def test_finds(space):
    index, exact = filled(space), hnswlib.BFIndex(space, DIM)
    exact.init_index(max_elements=N)
    exact.add_items(DATA)
    queries = DATA[:40] + np.float32(0.01)
    wanted = true_distances(space, queries)
    labels, distances = index.knn_query(queries, k=5)
    assert labels.dtype == np.uint64 and distances.dtype == np.float32
    assert labels.shape == distances.shape == (40, 5)
    assert np.mean(labels == np.argsort(wanted, axis=1)[:, :5]) > 0.99
    assert np.allclose(distances, np.take_along_axis(wanted, labels.astype(int), 1), atol=1e-5)
    if space != "cosine":  # hnswlib's exact search takes queries as they are
        labels, distances = exact.knn_query(queries, k=5)
        assert np.array_equal(labels, np.argsort(wanted, axis=1)[:, :5])
        assert np.allclose(distances, np.take_along_axis(wanted, labels.astype(int), 1), atol=1e-5)
    one, _ = index.knn_query(queries[0])
    assert one.shape == (1, 1)


def test_filters():
    index, exact = filled(), hnswlib.BFIndex("l2", DIM)
    exact.init_index(N)
    exact.add_items(DATA)
    for each in index, exact:
        labels, _ = each.knn_query(DATA, k=1, filter=lambda label: label % 2 == 0)
        assert (labels % 2 == 0).all()
        assert np.mean(labels[:, 0] == np.arange(N)) == 0.5
        with pytest.raises(RuntimeError):
            each.knn_query(DATA[:1], k=2, filter=lambda label: label == 7)


def test_items():
    index = filled()
    assert np.array_equal(index.get_items(range(N)), DATA)
    assert index.get_items([3, 1], return_type="list") == DATA[[3, 1]].tolist()
    assert sorted(index.get_ids_list()) == list(range(N))
    unit = filled("cosine").get_items([5])
    assert np.allclose(np.linalg.norm(unit), 1)
    labels, _ = index.knn_query(DATA[:9], k=1)
    assert np.array_equal(index.get_items(labels), DATA[:9])
    with pytest.raises(ValueError):
        index.get_items(3)
    with pytest.raises(ValueError, match="return_type"):
        index.get_items([3], return_type="tuple")
    with pytest.raises(RuntimeError, match="Label not found"):
        index.get_items([N])


def test_labels():
    index = make(n=10)
    index.add_items(DATA[:3], [7, 2**40, 9])
    index.add_items(DATA[3], 1)
    assert sorted(index.get_ids_list()) == [1, 7, 9, 2**40]
    index.add_items(DATA[4:6], [7, 7])
    assert np.array_equal(index.get_items([7])[0], DATA[5])
    assert index.get_current_count() == 4
    index.add_items(DATA[6:8])  # numbered on, as hnswlib does
    assert sorted(index.get_ids_list()) == [1, 6, 7, 9, 2**40]
    with pytest.raises(RuntimeError, match="label shape"):
        index.add_items(DATA[:2], [1, 2, 3])
    with pytest.raises(RuntimeError, match="Wrong dimensionality"):
        index.add_items(DATA[:, :5])
    with pytest.raises(RuntimeError, match="wrong shape"):
        index.add_items(DATA[None])


def test_limits():
    index = make(n=5)
    with pytest.raises(RuntimeError, match="exceeds the specified limit"):
        index.add_items(DATA[:6])
    assert index.get_current_count() == 0
    index.add_items(DATA[:5])
    with pytest.raises(RuntimeError, match="exceeds the specified limit"):
        index.add_items(DATA[5])
    with pytest.raises(RuntimeError, match="Cannot resize"):
        index.resize_index(4)
    index.resize_index(6)
    index.add_items(DATA[5])
    assert index.max_elements == index.get_max_elements() == index.element_count == 6
    with pytest.raises(RuntimeError, match="contiguous 2D array"):
        index.knn_query(DATA[:1], k=7)
    for bad in (np.nan, np.inf):
        with pytest.raises(RuntimeError):
            index.add_items(np.full(DIM, bad), 3)
    with pytest.raises(RuntimeError):
        make("cosine").add_items(np.zeros(DIM))


def test_states():
    index = hnswlib.Index(space="l2", dim=DIM)
    assert (index.space, index.dim, index.ef, index.M, index.ef_construction, index.element_count) == ("l2", DIM, 10, 0, 0, 0)
    assert repr(index) == f"<hnswlib.Index(space='l2', dim={DIM})>"
    for call in (lambda: index.knn_query(DATA), lambda: index.add_items(DATA), index.get_current_count):
        with pytest.raises(RuntimeError, match="init_index"):
            call()
    index.set_ef(33)
    index.init_index(N, M=8, ef_construction=60, random_seed=3)
    assert (index.ef, index.M, index.ef_construction) == (33, 8, 60)
    with pytest.raises(RuntimeError, match="already initiated"):
        index.init_index(N)
    index.ef = 44
    assert index.ef == 44
    index.set_num_threads(2)
    assert index.num_threads == 2
    with pytest.raises(RuntimeError, match="Space name"):
        hnswlib.Index("hamming", DIM)


def test_deletes():
    index = filled()
    for label in range(0, N, 2):
        index.mark_deleted(label)
    labels, _ = index.knn_query(DATA, k=3)
    assert (labels % 2 == 1).all()
    assert index.get_current_count() == N
    assert sorted(index.get_ids_list()) == list(range(N))
    for call, label, text in (
        (index.mark_deleted, 2, "already deleted"),
        (index.mark_deleted, N, "Label not found"),
        (index.unmark_deleted, 3, "not deleted"),
        (index.unmark_deleted, N, "Label not found"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call(label)
    with pytest.raises(RuntimeError, match="Label not found"):
        index.get_items([2])
    index.unmark_deleted(2)
    labels, distances = index.knn_query(DATA[2], k=1)
    assert (labels[0, 0], distances[0, 0]) == (2, 0)
    index.add_items(DATA[5], 4)  # an add brings a deleted label back
    assert np.array_equal(index.get_items([4])[0], DATA[5])


def test_replaces_deleted():
    index = filled(allow_replace_deleted=True)
    for label in range(10):
        index.mark_deleted(label)
    with pytest.raises(RuntimeError, match="exceeds the specified limit"):
        index.add_items(DATA[:1], [N])
    with pytest.raises(RuntimeError, match="update deleted"):
        index.add_items(DATA[:1], [3])
    index.add_items(DATA[:10], np.arange(N, N + 10), replace_deleted=True)
    assert index.get_current_count() == N
    assert not set(range(10)) & set(index.get_ids_list())
    assert np.array_equal(index.get_items(range(N, N + 10)), DATA[:10])
    with pytest.raises(RuntimeError, match="exceeds the specified limit"):
        index.add_items(DATA[:1], [2 * N], replace_deleted=True)
    with pytest.raises(RuntimeError, match="disabled in constructor"):
        filled().add_items(DATA[:1], [N], replace_deleted=True)


def same(one, other):
    assert sorted(one.get_ids_list()) == sorted(other.get_ids_list())
    first, second = one.knn_query(DATA[:50], k=5), other.knn_query(DATA[:50], k=5)
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_files(tmp_path):
    path = tmp_path / "x.bin"
    index = filled(allow_replace_deleted=True)
    for label in range(5):
        index.mark_deleted(label)
    index.resize_index(N + 10)
    index.save_index(str(path))
    assert index.index_file_size() > N * DIM
    with shortlist.open(path) as file:
        assert len(file) == N - 5
    other = hnswlib.Index("l2", DIM)
    other.load_index(str(path), allow_replace_deleted=True)
    other.set_ef(200)
    assert (other.get_max_elements(), other.get_current_count()) == (N + 10, N)
    same(index, other)
    other.unmark_deleted(3)
    assert np.array_equal(other.get_items([3])[0], DATA[3])
    other.add_items(DATA[:2], [N, N + 1], replace_deleted=True)
    assert other.get_current_count() == N
    with pytest.warns(UserWarning, match="already inited"):
        other.load_index(path, max_elements=2 * N)
    assert other.get_max_elements() == 2 * N
    index.unmark_deleted(0)
    for label in range(1, 5):
        index.unmark_deleted(label)
    index.save_index(path)
    assert [file.name for file in pathlib.Path(tmp_path).iterdir() if "deleted" in file.name] == []


def test_files_of_another_space(tmp_path):
    filled().save_index(tmp_path / "x.bin")
    index = hnswlib.Index("ip", DIM)
    index.load_index(tmp_path / "x.bin")
    index.set_ef(200)
    labels, _ = index.knn_query(DATA[:20], k=1)
    assert np.mean(labels[:, 0] == np.argmax(DATA[:20] @ DATA.T, axis=1)) > 0.95


def test_bad_files(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"nothing")
    filled().save_index(tmp_path / "y.bin")
    for index, path in (
        (hnswlib.Index("l2", DIM), tmp_path / "x.bin"),
        (hnswlib.Index("l2", DIM), tmp_path / "none.bin"),
        (hnswlib.Index("l2", DIM + 1), tmp_path / "y.bin"),
    ):
        with pytest.raises(RuntimeError, match="corrupted or unsupported"):
            index.load_index(path)
    with pytest.raises(RuntimeError, match="corrupted or unsupported"):
        hnswlib.BFIndex("l2", DIM).load_index(tmp_path / "x.bin")


def test_copies():
    index = filled()
    index.mark_deleted(3)
    for other in (pickle.loads(pickle.dumps(index)), hnswlib.Index(index), hnswlib.Index(index=index),
                  hnswlib.Index(params=index.__getstate__()[0])):
        assert other.ef == 200
        same(index, other)
        other.unmark_deleted(3)
    assert 3 in index._deleted
    fresh = pickle.loads(pickle.dumps(hnswlib.Index("cosine", DIM)))
    assert (fresh.space, fresh.element_count) == ("cosine", 0)
    with pytest.raises(TypeError):
        hnswlib.Index()


def test_exact(tmp_path):
    index = hnswlib.BFIndex("l2", DIM)
    assert repr(index) == f"<hnswlib.BFIndex(space='l2', dim={DIM})>"
    index.init_index(10)
    index.add_items(DATA[:10], np.arange(100, 110))
    with pytest.raises(RuntimeError, match="exceeds the specified limit"):
        index.add_items(DATA[10])
    index.delete_vector(103)
    index.delete_vector(103)
    assert (index.get_current_count(), index.get_max_elements()) == (9, 10)
    assert 103 not in index.knn_query(DATA[3], k=9)[0]
    index.add_items(DATA[20], 101)
    assert index.knn_query(DATA[20])[0][0, 0] == 101
    index.save_index(tmp_path / "b.bin")
    other = hnswlib.BFIndex("l2", DIM)
    other.load_index(tmp_path / "b.bin")
    assert np.array_equal(other.knn_query(DATA, k=4)[0], index.knn_query(DATA, k=4)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            other.load_index(tmp_path / "b.bin")
