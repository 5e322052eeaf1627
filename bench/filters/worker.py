"""Faiss and numpy under the orders of bench/peers/native/native.cpp: worker.py CPU K faiss INDEX | scan BASE METRIC.

A call takes many queries, so that Python's share of a query's time is small.
"""

import json
import os
import sys
import time

import numpy

SCAN_FLOATS = 1 << 21  # scores that a scan holds at once: as many as stay in the cache


def matrix(path):
    rows, dim = numpy.fromfile(path, numpy.uint32, 2)
    return numpy.fromfile(path, numpy.float32, offset=8).reshape(int(rows), int(dim))


class Faiss:
    batch = 25  # queries a call

    def __init__(self, path, k):
        import faiss

        faiss.omp_set_num_threads(1)
        self.faiss, self.k = faiss, k
        self.index = faiss.read_index(path)
        self.selector = None

    def allow(self, words):
        self.words = words.view(numpy.uint8)
        self.selector = self.faiss.IDSelectorBitmap(self.words) if len(words) else None

    def set(self, values):
        inverted = isinstance(self.index, self.faiss.IndexIVF)
        graph = isinstance(self.index, self.faiss.IndexHNSW)
        self.params = (self.faiss.SearchParametersIVF(sel=self.selector, nprobe=int(values[0])) if inverted else
                       self.faiss.SearchParametersHNSW(sel=self.selector, efSearch=int(values[0])) if graph else
                       self.faiss.SearchParameters(sel=self.selector))

    def search(self, queries):
        return self.index.search(queries, self.k, params=self.params)[1]


class Scan:
    """Rows of what is allowed, copied once a filter: a product of matrices, and the best of each row."""

    def __init__(self, path, metric, k):
        self.rows, self.k, self.metric = matrix(path), k, metric
        if metric == "cosine":
            self.rows /= numpy.maximum(numpy.linalg.norm(self.rows, axis=1, keepdims=True), 1e-30)

    def allow(self, words):
        flags = numpy.unpackbits(words.view(numpy.uint8), bitorder="little")[:len(self.rows)]
        self.ids = numpy.flatnonzero(flags) if len(words) else numpy.arange(len(self.rows))
        self.allowed = numpy.ascontiguousarray(self.rows[self.ids])
        self.batch = 100 if len(self.ids) < 20000 else 10  # so that a pass can end early where it takes long
        self.half_norms = (self.allowed ** 2).sum(axis=1) / 2 if self.metric == "l2" else None

    def set(self, _):
        pass

    def search(self, queries):
        keep, found = min(self.k, len(self.ids)), []
        step = max(1, SCAN_FLOATS // len(self.ids))
        for first in range(0, len(queries), step):
            scores = queries[first:first + step] @ self.allowed.T
            if self.half_norms is not None:
                scores -= self.half_norms
            if keep < len(self.ids):
                best = numpy.argpartition(scores, -keep, axis=1)[:, -keep:]
                order = (-numpy.take_along_axis(scores, best, axis=1)).argsort(axis=1)
                best = numpy.take_along_axis(best, order, axis=1)
            else:
                best = (-scores).argsort(axis=1)
            found.append(self.ids[best])
        return numpy.concatenate(found)


class Worker:
    def __init__(self, index):
        self.index, self.queries, self.most = index, None, float("inf")

    def cell(self, queries, bits, most):
        self.queries, self.most = matrix(queries), float(most)
        words = numpy.zeros(0, numpy.uint64) if bits == "-" else numpy.fromfile(bits, numpy.uint64)
        started = time.perf_counter()
        self.index.allow(words)
        return {"allow_s": time.perf_counter() - started}

    def once(self):
        """A pass. Gives what was found by the queries that were asked."""
        found, started = [], time.perf_counter()
        for first in range(0, len(self.queries), self.index.batch):
            found.append(self.index.search(self.queries[first:first + self.index.batch]))
            if time.perf_counter() - started > self.most:
                break
        return numpy.concatenate(found)

    def measure(self, seconds, ids, *settings):
        self.index.set([float(value) for value in settings])
        if float(seconds) > 0:
            self.once()
        took, passes, answered = 0.0, 0, 0
        started, worked = time.perf_counter(), time.process_time()
        while passes == 0 or took < float(seconds):
            found = self.once()
            passes, answered = passes + 1, answered + len(found)
            took = time.perf_counter() - started
        told = {"qps": answered / took, "cpu_qps": answered / max(1e-9, time.process_time() - worked),
                "passes": passes, "answered": answered}
        if int(ids):
            told["ids"] = [[i for i in row if i >= 0] for row in found.tolist()]
        return told


def main():
    cpu, k, kind, *words = sys.argv[1:]
    os.sched_setaffinity(0, {int(cpu)})
    worker = Worker(Faiss(*words, int(k)) if kind == "faiss" else Scan(*words, int(k)))
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        first, *rest = line.split()
        told = worker.cell(*rest) if first == "cell" else worker.measure(first, *rest)
        print(json.dumps(told), flush=True)
    os._exit(0)  # some libraries fail while being unloaded


if __name__ == "__main__":
    main()
