"""Runbooks: sequences of inserts, deletes, replaces and searches over the rows of a set, made by a seeded generator.

The recipes follow the streaming track of big-ann-benchmarks (NeurIPS'23) and Lucene's test of merges. A recipe takes a
number of rows, so that any set can be put through it. The id of a vector is the row it was first added with, or the
next number where rows are used again.
"""

import dataclasses
import hashlib

import numpy

from books import CHURN

INSERT, DELETE, REPLACE, SEARCH, COMPARE = range(5)
KINDS = ("insert", "delete", "replace", "search", "compare")  # compare: a search here and in a fresh build

STEPS = 100          # of the recipes with lifetimes; each inserts one batch and ends with a search
LONG, SHORT = 100, 20  # steps that a batch lives; the third lifetime is endless
LEAST, MOST = 0.5, 0.9  # of a batch is inserted where the rest replaces vectors later
WINDOW_STEPS = 200   # of the sliding window; half of them is the window
# Shares of the lifetimes never, long and short in parts of 19, as the track draws them for its million of Wikipedia.
EXPIRE, EXPIRE_AND_REPLACE = (1, 3, 15), (2, 6, 11)


@dataclasses.dataclass(frozen=True)
class Operation:
    """ids: of an insert, a delete or a replace. rows: row numbers of their vectors, of an insert or a replace."""
    kind: int
    ids: numpy.ndarray = dataclasses.field(default_factory=lambda: numpy.zeros(0, numpy.int64))
    rows: numpy.ndarray = dataclasses.field(default_factory=lambda: numpy.zeros(0, numpy.int64))


def span(begin, end):
    return numpy.arange(begin, end, dtype=numpy.int64)


def insert(begin, end):
    return Operation(INSERT, span(begin, end), span(begin, end))


# ---------------------------------------------------------------------------------------------------------------------
# Recipes
# ---------------------------------------------------------------------------------------------------------------------

def due(step, lifetime, halved):
    """The step at which a batch of a lifetime is deleted, or replaced (`halved`: at half its life). None: never."""
    steps = {"never": (STEPS - step) // 2 if halved else STEPS, "long": LONG, "short": SHORT}[lifetime]
    at = step + (steps // 2 if halved and lifetime != "never" else steps)
    return at if step < at < STEPS else None


def closed(operations):
    """The operations, the last search of which is compared with a fresh build: harder vectors at the end, as the rare
    words of glove100, lower recall in both."""
    last = max(number for number, one in enumerate(operations) if one.kind == SEARCH)
    return [*operations[:last], Operation(COMPARE), *operations[last + 1:]]


def lifetimes(rows, seed, weights, deletes, replaces):
    """Batches that live for ever, long or short. With `replaces` a batch keeps some rows back, and they become the new
    vectors of its first ids at half of its life."""
    dice = numpy.random.default_rng(seed)
    batch = rows // STEPS
    deleted, replaced = ({step: [] for step in range(STEPS)} for _ in range(2))
    operations = []
    for step in range(STEPS):
        begin = step * batch
        end = begin + (int(dice.uniform(LEAST, MOST) * batch) if replaces else batch)
        lifetime = ("never", "long", "short")[dice.choice(3, p=numpy.array(weights) / sum(weights))]
        operations.append(insert(begin, end))
        if deletes and due(step, lifetime, False):
            deleted[due(step, lifetime, False)].append(Operation(DELETE, span(begin, end)))
        if replaces and due(step, lifetime, True):
            kept = span(end, begin + batch)
            replaced[due(step, lifetime, True)].append(Operation(REPLACE, span(begin, begin + len(kept)), kept))
        operations += [*deleted[step], *replaced[step], Operation(SEARCH)]
    return closed(operations)


def expiration(rows):
    return lifetimes(rows, 20, EXPIRE, True, False)


def replace_only(rows):
    return lifetimes(rows, 2, EXPIRE, False, True)


def replace_delete(rows):
    return lifetimes(rows, 3, EXPIRE_AND_REPLACE, True, True)


def sliding_window(rows):
    """The first half of the batches fills the window. Then each step searches, deletes the oldest and inserts one."""
    batch, operations = rows // WINDOW_STEPS, []
    for step in range(WINDOW_STEPS):
        oldest = step - WINDOW_STEPS // 2
        if oldest >= 0:
            operations += [Operation(SEARCH), Operation(DELETE, span(oldest * batch, (oldest + 1) * batch))]
        operations.append(insert(step * batch, (step + 1) * batch))
    return closed(operations)


def churn(rows, live, generations, share, seed, compare_every):
    """Each generation deletes a random share and inserts as many rows under new ids. Rows that were deleted come back
    once all others were used. The last generation and every compare_every-th is compared with a fresh build."""
    if not 0 < live < rows:
        raise ValueError(f"{live} of {rows} rows cannot live: some must wait to be inserted")
    dice = numpy.random.default_rng(seed)
    order = dice.permutation(rows)
    row_of = {id_: row for id_, row in enumerate(order[:live].tolist())}
    waiting, change = order[live:].tolist(), round(share * live)
    operations = [Operation(INSERT, span(0, live), order[:live].astype(numpy.int64)), Operation(COMPARE)]
    for generation in range(1, generations + 1):
        gone = numpy.sort(dice.choice(sorted(row_of), change, replace=False))
        waiting += [row_of.pop(id_) for id_ in gone.tolist()]
        new, waiting = waiting[:change], waiting[change:]
        ids = span(live + (generation - 1) * change, live + generation * change)
        row_of.update(zip(ids.tolist(), new))
        compared = generation % compare_every == 0 or generation == generations
        operations += [Operation(DELETE, gone), Operation(INSERT, ids, numpy.array(new, numpy.int64)),
                       Operation(COMPARE if compared else SEARCH)]
    return operations


def generations(rows, live):
    """Lucene's protocol: 100 generations of 2 % replaced."""
    return churn(rows, live, 100, 0.02, 5, 10)


def turnover(rows, live):
    """Ten times the live set: 20 rounds that delete half and insert as many."""
    return churn(rows, live, 20, 0.5, 6, 2)


RECIPES = {"expiration": expiration, "replace-only": replace_only, "replace-delete": replace_delete,
           "sliding-window": sliding_window, "generations": generations, "turnover": turnover}


def make(name, rows, live=0):
    """The runbook of a recipe. live: of those of CHURN."""
    return RECIPES[name](rows, live) if name in CHURN else RECIPES[name](rows)


# ---------------------------------------------------------------------------------------------------------------------
# The set of live vectors
# ---------------------------------------------------------------------------------------------------------------------

def replay(operations):
    """Yields each operation with {id: row} of the live vectors after it: as ids in rising order, and their rows.
    Refuses an insert of a live id, and a delete or a replace of another."""
    row_of = numpy.full(1 + max((int(one.ids.max()) for one in operations if len(one.ids)), default=0), -1, numpy.int64)
    for number, one in enumerate(operations):
        there = row_of[one.ids] >= 0
        if len(numpy.unique(one.ids)) < len(one.ids) or (there.any() if one.kind == INSERT else not there.all()):
            raise ValueError(f"operation {number}, {KINDS[one.kind]}: an id is there already, is not there, or comes twice")
        row_of[one.ids] = -1 if one.kind == DELETE else one.rows
        live = numpy.flatnonzero(row_of >= 0)
        yield one, live, row_of[live]


def searches(operations):
    """(ids, rows) of the live vectors at each search."""
    return [(ids, rows) for one, ids, rows in replay(operations) if one.kind in (SEARCH, COMPARE)]


def most_live(operations):
    return max(len(ids) for _, ids, _ in replay(operations))


def counted(operations):
    """{kind: how many}."""
    return {name: sum(one.kind == kind for one in operations) for kind, name in enumerate(KINDS)}


# ---------------------------------------------------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------------------------------------------------

def joined(operations):
    """Arrays that hold a runbook: kinds, lengths of ids and of rows, and these one after another."""
    return {"kinds": numpy.array([one.kind for one in operations], numpy.int64),
            "id_counts": numpy.array([len(one.ids) for one in operations], numpy.int64),
            "row_counts": numpy.array([len(one.rows) for one in operations], numpy.int64),
            "ids": numpy.concatenate([one.ids for one in operations]),
            "rows": numpy.concatenate([one.rows for one in operations])}


def save(path, operations):
    """Workers read runbooks from files: another numpy may draw other numbers."""
    numpy.savez(path, **joined(operations))


def load(path):
    with numpy.load(path) as found:
        ids = numpy.split(found["ids"], numpy.cumsum(found["id_counts"])[:-1])
        rows = numpy.split(found["rows"], numpy.cumsum(found["row_counts"])[:-1])
        return [Operation(int(kind), *one) for kind, *one in zip(found["kinds"], ids, rows)]


def digest(operations):
    """Names what a runbook does."""
    arrays = joined(operations)
    return hashlib.sha256(b"".join(name.encode() + arrays[name].tobytes() for name in sorted(arrays))).hexdigest()[:16]
