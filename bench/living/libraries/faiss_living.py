"""Faiss: inverted lists over f32. Its HNSW removes nothing. Its wiki ("Special operations on indexes") asks for the
direct map of kind Hashtable, with which remove_ids takes time by the vectors removed."""

import functools
import math

import faiss
from parts import drawn

from . import base

PACKAGE = "faiss-cpu"
POINTS = 39  # a list that training asks for at least; fewer give a warning


class Living(base.Living):
    depth = "nprobe"
    bytes_are = "bytes of serialize_index()"
    deletes_are = "remove_ids: the last vector of the list takes the place"

    def __init__(self, shape):
        faiss.omp_set_num_threads(1)
        metric = faiss.METRIC_L2 if shape.similarity == "l2" else faiss.METRIC_INNER_PRODUCT
        self.lists = max(1, min(round(4 * math.sqrt(shape.room)), shape.room // POINTS))
        self.index = faiss.index_factory(shape.dim, f"IVF{self.lists},Flat", metric)
        self.index.train(shape.sample[drawn(len(shape.sample), POINTS * self.lists)])
        self.index.set_direct_map_type(faiss.DirectMap.Hashtable)

    def add(self, ids, rows, threads=1):
        faiss.omp_set_num_threads(threads)
        self.index.add_with_ids(rows, ids)

    def delete(self, ids):
        self.index.remove_ids(ids)

    def set(self, depth):
        self.index.nprobe = min(depth, self.lists)

    def rows(self, queries):
        return [queries[at:at + 1] for at in range(len(queries))]

    def one(self):
        return functools.partial(self.index.search, k=base.K)

    def ids(self, answer):
        return answer[1][0]

    def bytes(self):
        return faiss.serialize_index(self.index).nbytes

    def settings(self):
        return {"factory": f"IVF{self.lists},Flat", "direct_map": "Hashtable"}
