"""From a user to ranked items: an index over item vectors, a wide & deep model trained on clicks, and the two in one
call. The clicks are made up: people click what is near their taste, and the young click what is new. The vectors know of
the taste alone; what ranking adds is measured at the end, and checked."""

import numpy as np
import shortlist

rng = np.random.default_rng(1)
items, users = rng.random((5000, 16), np.float32) - 0.5, rng.random((500, 16), np.float32) - 0.5
year, age = rng.random(5000, np.float32), rng.random(500, np.float32)


def chance(user, item):
    fresh = (year[item] - 0.5) * np.where(age[user] < 0.5, 6, -6)
    return 1 / (1 + np.exp(-(2 * (users[user] * items[item]).sum(-1) + fresh - 1)))


u, i = rng.integers(500, size=40000), rng.integers(5000, size=40000)
spec = {"label": {"column": "label"}, "train": {"epochs": 5}, "features": [
    {"name": "age", "type": "numeric"}, {"name": "year", "type": "numeric", "side": "item"},
    {"name": "age_group", "type": "bucket", "column": "age", "quantiles": 5},
    {"name": "decade", "type": "bucket", "column": "year", "quantiles": 5, "side": "item"},
    {"name": "both", "type": "cross", "of": ["age_group", "decade"], "hash": 100},
    {"name": "near", "type": "score"}]}
ranker = shortlist.Ranker.train(spec, {"age": age[u], "year": year[i], "near": (users[u] * items[i]).sum(1),
                                       "label": (rng.random(40000) < chance(u, i)).astype(np.float32)})
index = shortlist.Index(dim=16, metric="ip", refine="f32")
index.add(items)
table = shortlist.Items({"id": np.arange(5000), "year": year})

recalled, _ = index.search(users, k=10, ef=200)
ranked = shortlist.recommend(index, ranker, table, users, {"age": age}, n=10, candidates=200).ids
by_recall, by_rank = (10 * chance(np.arange(500)[:, None], ids.astype(int)).mean() for ids in (recalled, ranked))
print(f"of 10 items shown to a user, {by_recall:.2f} would be clicked by recall alone, {by_rank:.2f} by recall and rank")
assert by_rank > 1.2 * by_recall
