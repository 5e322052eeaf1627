"""From a user to the top n."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
import weakref

import numpy as np
import pytest
from clicks import DIM, columns, spec
from conftest import forks, moves, run_together

import shortlist

ITEMS, USERS = 300, 12
ITEM_COLUMNS, USER_COLUMNS = ("price", "shop", "tags"), ("age", "city", "face")


@pytest.fixture(scope="module")
def rows():
    return columns(600)


@pytest.fixture(scope="module")
def rk(rows):
    return shortlist.Ranker.train(spec(), rows, threads=1)


@pytest.fixture(scope="module")
def other_rk(rows):
    return shortlist.Ranker.train(spec(), rows, threads=1, seed=9, epochs=1)


def item_data():
    made = columns(ITEMS, seed=2)
    return {"id": np.arange(ITEMS), **{name: made[name] for name in ITEM_COLUMNS}}


@pytest.fixture
def items():
    return shortlist.Items(item_data())


@pytest.fixture(scope="module")
def users():
    made = columns(USERS, seed=3)
    return {name: made[name] for name in USER_COLUMNS}


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(4).standard_normal((USERS, 8)).astype(np.float32)


def new_index(n=ITEMS):
    ix = shortlist.Index(dim=8, metric="ip", codes="f32")
    ix.add(np.random.default_rng(5).standard_normal((n, 8)).astype(np.float32))
    return ix


@pytest.fixture
def index():
    return new_index()


@pytest.fixture
def serving(index, rk, items):
    return shortlist.Recommender(index, rk, items)


def pair_scores(rk, users, user, ids):
    """Gives the ranker's scores of rows put together by hand."""
    every = item_data()
    pair = {name: [every[name][int(i)] for i in ids] for name in ITEM_COLUMNS}
    pair["price"] = np.array(pair["price"])
    pair.update({name: [users[name][user]] * len(ids) for name in USER_COLUMNS})
    pair["face"] = np.array(pair["face"])
    return rk.predict(pair)


@pytest.mark.parametrize("item_part", ["layer", "codes"])
def test_scores_are_the_rankers(item_part, index, rk, items, users, vectors):
    serving = shortlist.Recommender(index, rk, items, item_part=item_part)
    out = serving.recommend(vectors, users, n=ITEMS, candidates=ITEMS, ef=ITEMS)
    assert out.ids.shape == out.scores.shape == out.recall_scores.shape == (USERS, ITEMS)
    assert out.candidates == USERS * ITEMS and out.without_features == 0 and out.version == 0
    for user in range(USERS):
        assert sorted(out.ids[user]) == list(range(ITEMS))
        assert (np.diff(out.scores[user]) <= 0).all()
        np.testing.assert_allclose(out.scores[user], pair_scores(rk, users, user, out.ids[user]), atol=1e-5)
        np.testing.assert_allclose(out.recall_scores[user], index.get(out.ids[user]) @ vectors[user], atol=1e-4)


@pytest.mark.parametrize("item_part, share, most", [("layer-bf16", 2, 0.005), ("layer-i8", 4, 0.02)])
def test_smaller_parts_score_nearly_the_same(item_part, share, most, index, rk, items, users, vectors):
    exact = shortlist.Recommender(index, rk, items)
    smaller = shortlist.Recommender(index, rk, items, item_part=item_part)
    width = spec()["deep"]["hidden"][0]
    assert exact.item_bytes - smaller.item_bytes == ITEMS * (4 * width - 4 * width // share)
    user = {name: values[:1] for name, values in users.items()}
    wanted, scores = (r.score(vectors[0], user, np.arange(ITEMS)) for r in (exact, smaller))
    np.testing.assert_allclose(scores, wanted, atol=most)
    assert (scores != wanted).any()
    before = smaller.item_bytes
    smaller.update({"id": [3], "price": [99.0]})
    assert smaller.item_bytes > before
    assert smaller.score(vectors[0], user, [3])[0] != scores[3]


def test_one_user_and_many_give_the_same(serving, users, vectors):
    many = serving.recommend(vectors, users, n=5, candidates=50, threads=2)
    for user in range(USERS):
        row = {name: values[user : user + 1] for name, values in users.items()}
        one = serving.recommend(vectors[user], row, n=5, candidates=50)
        assert one.ids.shape == (5,)
        np.testing.assert_array_equal(one.ids, many.ids[user])
        np.testing.assert_allclose(one.scores, many.scores[user], atol=1e-6)
        again = serving.recommend(vectors[user : user + 1].astype(np.float64), row, n=5, candidates=50)
        np.testing.assert_array_equal(again.ids[0], many.ids[user])


def test_candidates_come_from_recall(serving, index, users, vectors):
    found, _ = index.search(vectors, k=20, ef=100)
    out = serving.recommend(vectors, users, n=10, candidates=20, ef=100)
    for user in range(USERS):
        assert np.isin(out.ids[user], found[user]).all()


def test_score_alone(serving, rk, users, vectors):
    row = {name: values[2:3] for name, values in users.items()}
    scores = serving.score(vectors[2], row, [5, 7, 5, 0])
    np.testing.assert_allclose(scores, pair_scores(rk, users, 2, [5, 7, 5, 0]), atol=1e-5)
    assert serving.score(vectors[2], row, []).shape == (0,)
    many = np.arange(70000) % ITEMS  # more than a search may recall
    every = serving.score(vectors[2], row, many)
    np.testing.assert_allclose(every, serving.score(vectors[2], row, np.arange(ITEMS))[many], atol=1e-6)
    with pytest.raises(ValueError, match="recall_scores"):
        serving.score(vectors[2], row, [5], recall_scores=[1.0, 2.0])
    with pytest.raises(ValueError, match="one vector"):
        serving.score(vectors[:2], {name: values[:2] for name, values in users.items()}, [5])


def test_exclusions(serving, users, vectors):
    full = serving.recommend(vectors, users, n=20, candidates=ITEMS, ef=ITEMS)
    seen = [row[: 3 + i % 3] for i, row in enumerate(full.ids)]
    offsets = np.cumsum([0] + [len(ids) for ids in seen])
    for exclude in (seen, [ids.tolist() for ids in seen], (offsets, np.concatenate(seen))):
        out = serving.recommend(vectors, users, n=10, candidates=ITEMS, ef=ITEMS, exclude=exclude)
        for user in range(USERS):
            np.testing.assert_array_equal(out.ids[user], full.ids[user][len(seen[user]) :][:10])
    row = {name: values[:1] for name, values in users.items()}
    one = serving.recommend(vectors[0], row, n=10, candidates=ITEMS, ef=ITEMS, exclude=seen[0])
    np.testing.assert_array_equal(one.ids, full.ids[0][3:13])
    none = serving.recommend(vectors[0], row, n=10, candidates=ITEMS, ef=ITEMS, exclude=[])
    np.testing.assert_array_equal(none.ids, full.ids[0][:10])
    for wrong in (seen[:-1], (offsets[:-1], np.concatenate(seen)), (offsets[::-1], np.concatenate(seen)), (1, 2, 3)):
        with pytest.raises(ValueError, match="exclude"):
            serving.recommend(vectors, users, exclude=wrong)
    masked = np.ma.array([1, 2], mask=[0, 1])
    for wrong in ([masked] * USERS, (np.arange(USERS + 1) // USERS * 2, masked)):
        with pytest.raises(ValueError, match="^exclude is a masked array"):
            serving.recommend(vectors, users, exclude=wrong)


def test_one_list_excluded_for_many_is_refused(serving, users, vectors):
    with pytest.raises(ValueError, match="one list of ids"):
        serving.recommend(vectors, users, exclude=list(range(USERS)))


def test_parts_of_the_wrong_kind(index, rk, items, vectors):
    for parts, what in (((index, items, rk), "ranker"), (("x.sl", rk, items), "index"), ((index, rk, "x.sli"), "items")):
        with pytest.raises(TypeError, match=f"{what} is of type"):
            shortlist.recommend(*parts, vectors)
        with pytest.raises(TypeError, match=f"{what} is of type"):
            shortlist.Recommender(*parts)


def test_what_is_accepted(serving, users, vectors):
    allowed = np.zeros(ITEMS, np.bool_)
    allowed[::3] = True
    full = serving.recommend(vectors, users, n=ITEMS, candidates=ITEMS, ef=ITEMS)
    kept = [ids[ids % 3 == 0][:10] for ids in full.ids]
    for accept in (allowed, allowed.tolist(), np.arange(0, ITEMS, 3, np.int16), np.flatnonzero(allowed)[::-1]):
        out = serving.recommend(vectors, users, n=10, candidates=ITEMS, ef=ITEMS, accept=accept, threads=2)
        np.testing.assert_array_equal(out.ids, kept)
    for nothing in (np.zeros(0, np.bool_), np.zeros(0, np.int64), np.zeros(ITEMS, np.bool_)):
        out = serving.recommend(vectors, users, n=3, accept=nothing)
        assert (out.ids == shortlist.NO_ID).all() and np.isnan(out.scores).all()
    with pytest.raises(ValueError, match="accept"):
        serving.recommend(vectors, users, accept=[[True]])


def test_a_filter_is_accepted(serving, index, users, vectors):
    full = serving.recommend(vectors, users, n=ITEMS, candidates=ITEMS, ef=ITEMS)
    thirds = shortlist.Filter(index, lambda id: id % 3 == 0)
    out = serving.recommend(vectors, users, n=10, candidates=ITEMS, ef=ITEMS, accept=thirds, threads=2)
    np.testing.assert_array_equal(out.ids, [ids[ids % 3 == 0][:10] for ids in full.ids])


def test_no_more_than_so_many_of_a_group(index, rk, items, users, vectors):
    serving = shortlist.Recommender(index, rk, items, group="shop")
    out = serving.recommend(vectors, users, n=10, candidates=200, max_per_group=1)
    for ids in out.ids:
        shops = items.get(ids[ids != shortlist.NO_ID], "shop")["shop"]
        assert len(set(shops)) == len(shops) == 10
    with pytest.raises(ValueError, match="without a column of groups"):
        shortlist.Recommender(index, rk, items).recommend(vectors, users, max_per_group=1)


def test_candidates_without_features(index, rk, users, vectors):
    half = {name: values[: ITEMS // 2] for name, values in item_data().items()}
    out = shortlist.Recommender(index, rk, shortlist.Items(half)).recommend(vectors, users, 10, ITEMS, ITEMS)
    assert out.without_features == USERS * ITEMS // 2 and np.isfinite(out.scores).all()
    low = shortlist.Recommender(index, rk, shortlist.Items(half), missing_score=-1)
    out = low.recommend(vectors, users, n=ITEMS, candidates=ITEMS, ef=ITEMS)
    assert (out.scores[:, ITEMS // 2 :] == -1).all() and (out.ids[:, : ITEMS // 2] < ITEMS // 2).all()


def test_recall_alone(index, vectors):
    serving = shortlist.Recommender(index)
    ids, scores = index.search(vectors, k=7, ef=100)
    out = serving.recommend(vectors, n=7, candidates=50, ef=100)
    np.testing.assert_array_equal(out.ids, ids)
    np.testing.assert_allclose(out.scores, scores, rtol=1e-6)


def test_updates_are_seen(serving, items, rk, users, vectors):
    row = {name: values[:1] for name, values in users.items()}
    before = serving.score(vectors[0], row, [0, 1])
    serving.update({"id": [1], "price": [3.0], "shop": [5], "tags": [["red", "blue"]]})
    after = serving.score(vectors[0], row, [0, 1])
    assert after[0] == before[0] and after[1] != before[1]
    pair = {"price": [3.0], "shop": [5], "tags": [["red", "blue"]], **row}
    np.testing.assert_allclose(after[1], rk.predict(pair)[0], atol=1e-5)
    assert items.get(1, "shop") == {"shop": ["5"]}
    with pytest.raises(ValueError, match="memory"):
        serving.update("more.csv")
    with pytest.raises(ValueError, match="no items"):
        shortlist.Recommender(new_index()).update({"id": [1]})


def test_partial_updates_are_seen(serving, items, rk, users, vectors):
    row = {name: values[:1] for name, values in users.items()}
    tags = items.get(1, "tags")["tags"][0].split("|")
    serving.update({"id": [1], "price": [3.0], "shop": [5]}, partial=True)
    pair = {"price": [3.0], "shop": [5], "tags": [tags], **row}
    np.testing.assert_allclose(serving.score(vectors[0], row, [1])[0], rk.predict(pair)[0], atol=1e-5)
    with pytest.raises(KeyError, match="999999"):
        serving.update({"id": [999_999], "price": [3.0]}, partial=True)


def deleted_best(serving, users, vectors):
    """Deletes each user's first two items; returns them."""
    gone = np.unique(serving.recommend(vectors, users, n=5).ids[:, :2])
    serving.delete(gone)
    return gone


def test_deleted_items_never_come_back(serving, index, items, rk, users, vectors, tmp_path):
    gone = deleted_best(serving, users, vectors)
    size = len(items)
    assert size == ITEMS - len(gone)
    row = {name: values[:1] for name, values in users.items()}
    expected = serving.recommend(vectors, users, n=5, candidates=100)
    assert not np.isin(expected.ids, gone).any() and expected.candidates == 100 * len(vectors)
    assert np.isnan(serving.score(vectors[0], row, gone)).all()
    items.save(tmp_path / "items.sli")
    reopened = shortlist.Items.open(tmp_path / "items.sli")
    serving.swap(rk)
    for found in (
        serving.recommend(vectors, users, n=5, candidates=100),
        shortlist.Recommender(index, rk, reopened).recommend(vectors, users, n=5, candidates=100),
        shortlist.recommend(index, rk, items, vectors, users, n=5, candidates=100),
    ):
        np.testing.assert_array_equal(found.ids, expected.ids)
    for ids in (gone[:1], [1, 1], [10**9]):
        with pytest.raises(KeyError):
            serving.delete(ids)
    assert len(items) == size
    serving.update({"id": gone[:1], "price": [1.0], "shop": [1], "tags": [["red"]]})
    assert np.isfinite(serving.score(vectors[0], row, gone[:1])).all()
    with pytest.raises(ValueError, match="no items"):
        shortlist.Recommender(new_index()).delete([1])


def test_in_one_call_deletions_are_seen(index, rk, items, users, vectors):
    first = shortlist.recommend(index, rk, items, vectors, users, n=5)
    items.delete(np.unique(first.ids[:, 0]))
    second = shortlist.recommend(index, rk, items, vectors, users, n=5)
    assert not np.isin(second.ids, first.ids[:, 0]).any()


def test_deletions_beside_requests(serving, users, vectors):
    """No request that begins after a deletion has the item."""
    deleted, done = [], []

    def change():
        try:
            for item in range(0, 150, 2):
                serving.delete(item)
                deleted.append(item)
        finally:
            done.append(True)

    def ask():
        while not done:
            before = list(deleted)
            out = serving.recommend(vectors, users, n=5)
            assert not np.isin(out.ids, before).any()
            assert np.isfinite(out.scores).all()

    run_together(change, ask, ask)
    assert len(deleted) == 75


def test_swaps(serving, items, rk, other_rk, users, vectors):
    first = serving.recommend(vectors, users)
    serving.swap(other_rk)
    assert serving.version == 1 and serving.ranker is other_rk and serving.items is items
    second = serving.recommend(vectors, users)
    assert second.version == 1 and not np.array_equal(first.scores, second.scores)
    changed = item_data()
    changed["price"] = changed["price"] + 1
    serving.swap(items=shortlist.Items(changed))
    assert serving.version == 2 and serving.ranker is other_rk
    serving.swap(rk, items)
    np.testing.assert_array_equal(serving.recommend(vectors, users).ids, first.ids)
    with pytest.raises(KeyError):
        serving.swap(items=shortlist.Items({"id": [1, 2], "colour": ["a", "b"]}))
    assert serving.version == 3 and serving.items is items
    np.testing.assert_array_equal(serving.recommend(vectors, users).ids, first.ids)


def test_swaps_beside_requests(serving, items, rk, other_rk, users, vectors):
    """Every request sees the scores of one model, and its version says which."""
    by_model = [serving.recommend(vectors, users).scores]
    serving.swap(other_rk)
    by_model.append(serving.recommend(vectors, users).scores)
    seen, ended = [set(), set()], []

    def enough():
        return ended or all(len(versions) > 5 for versions in seen)

    def swap():
        try:
            while not enough():
                serving.swap((rk, other_rk)[serving.version % 2 == 0], items)
        finally:
            ended.append(True)

    def ask(versions):
        try:
            while not enough():
                for user in range(3):
                    row = {name: values[user : user + 1] for name, values in users.items()}
                    out = serving.recommend(vectors[user], row)
                    np.testing.assert_allclose(out.scores, by_model[out.version % 2][user], atol=1e-6)
                    versions.add(out.version)
        finally:
            ended.append(True)

    run_together(swap, lambda: ask(seen[0]), lambda: ask(seen[1]))
    assert all(len(versions) > 5 for versions in seen)


def test_updates_and_adds_beside_requests(serving, index, users, vectors):
    done = []

    def change():
        try:
            for i in range(30):
                serving.update({"id": [i], "price": [float(i)], "shop": [i], "tags": [["red"]]})
                index.add(np.full((1, 8), 0.01 * i, np.float32), ids=[10_000 + i])
        finally:
            done.append(True)

    def ask():
        while not done:
            out = serving.recommend(vectors, users, n=5)
            assert np.isfinite(out.scores).all()

    run_together(change, ask, ask)
    assert len(index) == ITEMS + 30


def test_swaps_and_updates_take_turns(serving, rk):
    """An update is of the table in use when its turn comes, never of one that a swap has replaced."""
    tables = [shortlist.Items(item_data()) for _ in range(4)]

    def swap(mine):
        for i in range(25):
            serving.swap(rk, mine[i % 2])

    def update(number):
        for _ in range(25):
            serving.update({"id": [number], "price": [1.0]})

    run_together(lambda: swap(tables[:2]), lambda: swap(tables[2:]), lambda: update(1), lambda: update(2))
    assert serving.version == 50
    serving.update({"id": [3], "price": [2.5]})
    assert sum(table.get(3, "price")["price"] == ["2.5"] for table in tables) == 1


def test_recommenders_of_a_table_that_is_changing_wait(index, rk, items):
    """Making one reads the table: that takes turns with updates, and with the making of others."""

    def make():
        for _ in range(15):
            shortlist.Recommender(index, rk, items, threads=1)

    def update():
        for _ in range(60):
            items.update({"id": [1], "price": [1.0]})

    run_together(make, make, update)


def test_an_index_changes_within_a_request(serving, index, users, vectors):
    expected, told = serving.recommend(vectors, users).ids, []

    def change(done, total):
        if not told:
            index.add(np.ones((1, 8), np.float32), ids=[10**6])
            index.delete(10**6)
        told.append(done)

    np.testing.assert_array_equal(serving.recommend(vectors, users, progress=change).ids, expected)
    assert told and index.stats()["deleted"] == 1
    with pytest.raises(RuntimeError, match="enough"):
        serving.recommend(vectors, users, progress=stop)


def stop(done, total):
    raise RuntimeError("enough")


def test_the_parts_are_kept_alive(rk, users, vectors):
    index, items = new_index(), shortlist.Items(item_data())
    serving = shortlist.Recommender(index, rk, items)
    expected = serving.recommend(vectors, users).ids
    del index, items
    gc.collect()
    np.testing.assert_array_equal(serving.recommend(vectors, users).ids, expected)


def test_a_closed_index(serving, index, users, vectors):
    index.close()
    for use in (
        lambda: serving.recommend(vectors, users),
        lambda: serving.recommend(vectors[:1], {name: values[:1] for name, values in users.items()}),
        lambda: serving.swap(),
        lambda: shortlist.Recommender(index),
    ):
        with pytest.raises(ValueError, match="closed"):
            use()
    del serving
    gc.collect()


def test_in_one_call(index, rk, items, users, vectors):
    expected = shortlist.Recommender(index, rk, items).recommend(vectors, users, n=4)
    out = shortlist.recommend(index, rk, items, vectors, users, n=4)
    np.testing.assert_array_equal(out.ids, expected.ids)
    items.update({"id": out.ids[0], "price": np.full(4, 400.0), "shop": [1] * 4, "tags": [["blue"]] * 4})
    after = shortlist.recommend(index, rk, items, vectors, users, n=4)
    fresh = shortlist.Recommender(index, rk, items).recommend(vectors, users, n=4)
    np.testing.assert_array_equal(after.ids, fresh.ids)
    np.testing.assert_array_equal(after.scores, fresh.scores)
    assert not np.array_equal(after.scores, out.scores)
    gone = weakref.ref(index)
    del index
    assert shortlist.recommend(new_index(), None, None, vectors, n=2).ids.shape == (USERS, 2)
    assert gone() is not None  # the fixture holds it
    with pytest.raises(TypeError):
        pickle.dumps(shortlist.Recommender(new_index()))


def test_in_one_call_the_index_may_have_grown(index, vectors):
    """Vectors of items that came later count, as in a recommender that is made then. A few need no new one."""
    made, ids = columns(ITEMS, seed=2), np.arange(ITEMS)
    data = {"click": made["click"], "it": np.asarray(index.get(ids), np.float32)}
    vector = {"name": "it", "type": "vector", "dim": 8, "side": "item", "source": "index"}
    text = {
        "label": {"column": "click"},
        "features": [vector],
        "wide": None,
        "deep": {"hidden": [4]},
        "train": {"epochs": 1, "validation": 0.0},
    }
    rk = shortlist.Ranker.train(text, data, threads=1)
    assert shortlist.recommend(index, rk, None, vectors, n=4, candidates=ITEMS).without_features == 0
    kept = shortlist._recommend._kept
    for some, keeps in ((1, True), (3, True), (ITEMS // 8, False)):
        first, size = kept[index].made, len(index) + some
        index.add(np.random.default_rng(some).standard_normal((some, 8)).astype(np.float32))
        out = shortlist.recommend(index, rk, None, vectors, n=4, candidates=size)
        assert out.without_features == 0 and out.candidates == USERS * size
        assert (kept[index].made is first) == keeps
        anew = shortlist.Recommender(index, rk).recommend(vectors, n=4, candidates=size)
        assert (out.ids == anew.ids).all() and np.allclose(out.scores, anew.scores, atol=1e-5)


def test_an_index_is_let_go_with_what_was_kept_for_it(vectors):
    index = new_index()
    shortlist.recommend(index, None, None, vectors)
    gone = weakref.ref(index)
    del index
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"n": 0}, "n"),
        ({"n": 2**40}, "n is"),
        ({"candidates": 10**9}, "candidates"),
        ({"ef": -1}, "ef"),
        ({"threads": -1}, "threads"),
        ({"user_features": "users.csv"}, "memory"),
    ],
)
def test_requests_that_cannot_be(serving, users, vectors, arguments, message):
    with pytest.raises(ValueError, match=message):
        serving.recommend(**{"vectors": vectors, "user_features": users, **arguments})


def test_parts_that_do_not_fit(index, rk, items, users, vectors, rows):
    with pytest.raises(ValueError, match="item_part"):
        shortlist.Recommender(index, rk, items, item_part="whole")
    with pytest.raises(KeyError):
        shortlist.Recommender(index, rk, shortlist.Items({"id": [1], "price": [1.0]}))
    with pytest.raises(KeyError):
        shortlist.Recommender(index, rk, items, group="colour")
    serving = shortlist.Recommender(index, rk, items)
    with pytest.raises(ValueError, match="12"):
        serving.recommend(vectors[:3], users)
    with pytest.raises(ValueError, match="dimension"):
        serving.recommend(vectors[:, :3], users)
    with pytest.raises(KeyError, match="city"):
        serving.recommend(vectors, {name: values for name, values in users.items() if name != "city"})
    with pytest.raises(ValueError):
        serving.recommend(np.full((USERS, 8), np.nan), users)
    multi = {**rows, "fruit": [["apple", "pear", "plum"][i % 3] for i in range(len(rows["age"]))]}
    several = shortlist.Ranker.create(spec(label={"column": "fruit", "loss": "multiclass"}), multi)
    with pytest.raises(ValueError):
        shortlist.Recommender(index, several, items)


@forks
def test_a_forked_child_goes_on_serving(index, rk, items, users, vectors, rows):
    """The parent has used several threads, which do not come along."""
    trained = shortlist.Ranker.train(spec(), rows, threads=2)
    serving = shortlist.Recommender(index, rk, items)
    expected = serving.recommend(vectors, users, threads=2).ids
    row = {name: values[:1] for name, values in users.items()}
    serving.recommend(vectors[0], row)
    scores = trained.predict(rows)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            assert (serving.recommend(vectors, users, threads=2).ids == expected).all()
            assert (serving.recommend(vectors[0], row).ids == expected[0]).all()
            assert (trained.predict(rows) == scores).all() and (trained.predict(rows, threads=2) == scores).all()
            serving.swap(trained)
            serving.update({"id": [1], "price": [2.0]})
            shortlist.Ranker.train(spec(), rows, threads=2)
            trained.evaluate(rows)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(serving.recommend(vectors, users, threads=2).ids, expected)


def test_python_runs_while_requests_are_served(counter, serving, users, vectors):
    many = {name: [values[i % USERS] for i in range(200)] for name, values in users.items()}
    request, _, _ = serving._request(np.tile(vectors, (17, 1))[:200], many)
    ids, scores = np.empty((200, 10), np.uint64), np.empty((200, 10), np.float32)
    options = {"n": 10, "candidates": 200, "ef": 0, "max_per_group": 0, "threads": 1}
    table = shortlist._columns.table({"id": np.arange(5000), "price": np.ones(5000)})
    calls = {
        "recommend": lambda: serving._core.recommend(request, options, ids, scores, scores.copy(), None),
        "swap": lambda: serving._core.swap(None, None),
        "update": lambda: serving._core.update(table, False),
        "set": lambda: serving._core.update(table, True),
    }
    assert not [what for what, call in calls.items() if not moves(counter, call)]


def test_the_core_refuses_buffers_that_do_not_fit(serving, users, vectors):
    request, _, _ = serving._request(vectors, users)
    options = {"n": 10, "candidates": 20, "ef": 0, "max_per_group": 0, "threads": 1}
    ids, scores = np.empty((USERS, 10), np.uint64), np.empty((USERS, 10), np.float32)
    wrong = [
        (request, ids[:-1], scores),
        (request, ids, scores[:, ::2]),
        ({**request, "exclude_start": np.arange(USERS + 1), "exclude_ids": np.zeros(3, np.uint64)}, ids, scores),
        ({**request, "exclude_start": np.full(USERS + 1, 5), "exclude_ids": np.zeros(5, np.uint64)}, ids, scores),
        ({**request, "vectors": vectors[:3]}, ids[:3], scores[:3]),
    ]
    for asked, into, also in wrong:
        with pytest.raises((ValueError, BufferError)):
            serving._core.recommend(asked, options, into, also, np.empty_like(scores[: len(into)]), None)


def test_a_damaged_table_is_not_served(index, rk, tmp_path):
    path = tmp_path / "items.sli"
    shortlist.Items(item_data()).save(path)
    shortlist.Recommender(index, rk, shortlist.Items.open(path), verify=True)
    data = bytearray(path.read_bytes())
    (offset,) = struct.unpack_from("<Q", data, 512 + 32 * 2 + 8)
    data[offset] ^= 1
    path.write_bytes(data)
    damaged = shortlist.Items.open(path)
    with pytest.raises(shortlist.Error, match="values of the columns") as caught:
        shortlist.Recommender(index, rk, damaged, verify=True)
    assert caught.value.status == "SL_ECORRUPT"
    shortlist.Recommender(index, rk, damaged)
