"""Build an index over clustered vectors, search it, and compare with exact search."""

import numpy as np

import shortlist

DIM, K = 64, 10
rng = np.random.default_rng(7)
centres = rng.standard_normal((100, DIM))
items = centres[rng.integers(100, size=5000)] + 0.5 * rng.standard_normal((5000, DIM))
queries = centres[rng.integers(100, size=200)] + 0.5 * rng.standard_normal((200, DIM))

index = shortlist.Index(dim=DIM, metric="cosine", codes="i8", refine="bf16")
index.add(items)
ids, scores = index.search(queries, k=K, ef=100)
true_ids, _ = shortlist.exact(items, queries, k=K, metric="cosine")

recall = np.mean([np.isin(found, true).mean() for found, true in zip(ids, true_ids)])
print(f"query 0: nearest item {ids[0, 0]}, cosine {scores[0, 0]:.3f}")
print(f"recall@{K} over {len(queries)} queries: {recall:.3f}")
assert recall >= 0.95
