"""hnswlib with allow_replace_deleted: an add takes the slot of a vector that was marked as deleted."""

import functools

import hnswlib

from . import base

PACKAGE = "hnswlib"
EF_CONSTRUCTION = 200


class Living(base.Living):
    bytes_are = "index_file_size(): of the slots in use"
    deletes_are = "marked; add_items(replace_deleted=True) uses the slot again"
    replaces_are = "add_items of an id that is there, which links it anew in its slot"

    def __init__(self, shape):
        self.shape = shape
        self.index = hnswlib.Index(shape.similarity, shape.dim)
        self.index.init_index(shape.room, ef_construction=EF_CONSTRUCTION, M=shape.m, allow_replace_deleted=True)

    def add(self, ids, rows, threads=1):
        self.index.add_items(rows, ids, num_threads=threads, replace_deleted=True)

    def delete(self, ids):
        for id_ in ids.tolist():
            self.index.mark_deleted(id_)

    def replace(self, ids, rows):
        self.index.add_items(rows, ids, num_threads=1)

    def set(self, depth):
        self.index.set_ef(depth)

    def one(self):
        return functools.partial(self.index.knn_query, k=base.K, num_threads=1)

    def bytes(self):
        return self.index.index_file_size()

    def settings(self):
        return {"M": self.shape.m, "ef_construction": EF_CONSTRUCTION, "allow_replace_deleted": True}
