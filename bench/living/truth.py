"""The rows that runbooks draw from a set, and the true neighbours at each search of a runbook, both kept."""

import hashlib
import json
import pathlib

import numpy
import shortlist

import runbooks
from parts import drawn
from sets import K, read_matrix, write_matrix


def unlike(rows):
    """Numbers of rows in their order, each vector once."""
    whole = numpy.dtype((numpy.void, rows.dtype.itemsize * rows.shape[1]))
    flat = numpy.ascontiguousarray(rows).view(whole).reshape(-1)
    return numpy.sort(numpy.unique(flat, return_index=True)[1])


class Rows:
    """Evenly drawn rows of a set, no two alike, in the order of the set, as the libraries get them. The queries of even
    numbers tune, those of odd numbers measure."""

    def __init__(self, data, count, work):
        self.name, self.metric, self.dim = data.name, data.metric, data.dim
        self.folder = pathlib.Path(work) / f"{data.name}-{count}"
        self.base, done = self.folder / "base.fbin", self.folder / "done"
        self.queries = {part: self.folder / f"{part}.fbin" for part in ("tune", "measure")}
        if not done.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            numbers = unlike(data.rows)
            write_matrix(self.base, data.rows[numbers[drawn(len(numbers), count)]])
            for part in self.queries:
                write_matrix(self.queries[part], data.part(part)[0])
            done.touch()
        self.rows = read_matrix(self.base)

    def __len__(self):
        return len(self.rows)


def nearest(rows, ids, queries, metric):
    """(queries, K) ids of the true nearest of the live rows; ids[i] is that of rows[i]."""
    if len(ids) < K:
        raise ValueError(f"a search among {len(ids)} live vectors has no {K} nearest; take more rows")
    return ids[shortlist.exact(rows, queries, K, metric)[0].astype(numpy.int64)]


def of_runbook(drawn_rows, operations, count, cache):
    """A file of the ids of the true K at each search, (searches * count, K), for the first `count` measured queries."""
    queries = read_matrix(drawn_rows.queries["measure"])[:count]
    about = [runbooks.digest(operations), hashlib.sha256(drawn_rows.base.read_bytes()).hexdigest(),
             hashlib.sha256(queries.tobytes()).hexdigest(), drawn_rows.metric]
    name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    path = pathlib.Path(cache) / f"{drawn_rows.name}-{name}.ibin"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        found = [nearest(drawn_rows.rows[rows], ids, queries, drawn_rows.metric)
                 for ids, rows in runbooks.searches(operations)]
        new = path.with_suffix(".new")
        write_matrix(new, numpy.concatenate(found).astype(numpy.uint32))
        new.rename(path)
    return path
