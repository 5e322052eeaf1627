"""The cells: how many vectors a filter allows, where the queries lie beside them, the true neighbours among them."""

import dataclasses
import pathlib

import numpy

from sets import K, write_matrix

EXCLUDED = 10000  # ids that a list excludes, as a user's history does
QUERIES = 100
SEED = 1
BLOCK = 25  # queries whose scores are held at once


@dataclasses.dataclass
class Cell:
    """One filter and the queries that are asked with it. `allowed`: ids in rising order."""
    share: float
    kind: str
    allowed: numpy.ndarray
    queries: numpy.ndarray  # numbers of the set's queries
    truth: list = None      # for each query the ids of its min(K, allowed) nearest among those allowed
    everywhere: list = None  # the same among all vectors
    name: str = ""

    @property
    def excludes(self):
        return self.name.startswith("all but")


def name_of(share, kind):
    return f"{share * 100:g} % {kind}"


def bits_of(allowed, count):
    """The words of a bitmap over `count` ids."""
    flags = numpy.zeros((count + 63) // 64 * 64, numpy.uint8)
    flags[allowed] = 1
    return numpy.packbits(flags, bitorder="little").view(numpy.uint64)


def nearest(scores, allowed):
    """Rows of ids, best first, of the min(K, allowed) best of each row of scores."""
    of = scores[:, allowed]
    keep = min(K, len(allowed))
    best = numpy.argpartition(-of, keep - 1, axis=1)[:, :keep]
    order = numpy.take_along_axis(-of, best, axis=1).argsort(axis=1)
    return allowed[numpy.take_along_axis(best, order, axis=1)].tolist()


def scores_of(data, queries):
    if data.similarity == "ip":
        return queries @ data.rows.T
    return 2 * queries @ data.rows.T - (data.rows ** 2).sum(axis=1)


def recall(found, truth):
    """The share of the true neighbours that were found; `found` may hold fewer queries, the first ones."""
    hits = [len(set(f) & set(t)) / len(t) for f, t in zip(found, truth)]
    return sum(hits) / len(hits)


def filled(cell):
    """The number of results that each query should give: min(K, allowed)."""
    return len(cell.truth[0])


def chosen_queries(data, pivot, dice):
    """{kind: numbers of queries}: the nearest to the pivot, any, and the farthest from it."""
    every = data.prepared(data.raw_queries)
    by_distance = numpy.argsort(-scores_of_pivot(data, pivot, every), kind="stable")
    return {"near": by_distance[:QUERIES], "far": by_distance[-QUERIES:],
            "chance": dice.permutation(len(every))[:QUERIES]}


def scores_of_pivot(data, pivot, rows):
    row = data.rows[pivot]
    return rows @ row if data.similarity == "ip" else -((rows - row) ** 2).sum(axis=1)


def make(data, shares, kinds):
    """All cells of these shares and kinds. With the filter of "near" and "far", the vectors nearest to a pivot are
    allowed; with that of "chance", any. A list of excluded ids is a filter of its own: by chance, or the nearest."""
    dice = numpy.random.default_rng(SEED)
    pivot = int(dice.integers(data.count))
    queries = chosen_queries(data, pivot, dice)
    by_distance = numpy.argsort(-scores_of_pivot(data, pivot, data.rows), kind="stable")
    by_chance = dice.permutation(data.count)
    cells = []
    for share in shares:
        for kind in kinds:
            order = by_chance if kind == "chance" else by_distance
            allowed = numpy.sort(order[:max(1, round(share * data.count))])
            cells.append(Cell(share, kind, allowed, queries[kind], name=name_of(share, kind)))
    for kind, order in (("chance", by_chance), ("near", by_distance)):
        if kind in kinds and data.count > 2 * EXCLUDED:
            allowed = numpy.sort(order[EXCLUDED:])
            cells.append(Cell(len(allowed) / data.count, kind, allowed, queries[kind],
                              name=f"all but {EXCLUDED} {kind}"))
    find_truth(data, cells)
    return cells


def find_truth(data, cells):
    """Fills the cells' truth, by comparing each query with each vector."""
    every = numpy.arange(data.count)
    for kind in dict.fromkeys(cell.kind for cell in cells):
        of = [cell for cell in cells if cell.kind == kind]
        rows = data.prepared(data.raw_queries[of[0].queries])
        everywhere, found = [], {id(cell): [] for cell in of}
        for first in range(0, len(rows), BLOCK):
            scores = scores_of(data, rows[first:first + BLOCK])
            everywhere += nearest(scores, every)
            for cell in of:
                found[id(cell)] += nearest(scores, cell.allowed)
        for cell in of:
            cell.truth, cell.everywhere = found[id(cell)], everywhere


def write(data, cell, folder):
    """Files of a cell: its queries as they are, the same as the peers get them, and the bitmap."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    raw, prepared, bits = (folder / name for name in ("raw.fbin", "prepared.fbin", "allowed.bits"))
    write_matrix(raw, data.raw_queries[cell.queries])
    write_matrix(prepared, data.prepared(data.raw_queries[cell.queries]))
    bits_of(cell.allowed, data.count).tofile(bits)
    return raw, prepared, bits
