"""Shortlist by its Python module. Replaces and compacts where the module can."""

import functools
import inspect

import shortlist

from . import base

PACKAGE = "shortlist"
CODES, REFINE = "i8", "bf16"
DUE = 0.1  # the share of deleted vectors from which on compact() is due

REPLACES = "replace" in inspect.signature(shortlist.Index.add).parameters
COMPACTS = hasattr(shortlist.Index, "compact")


class Living(base.Living):
    bytes_are = "stats()['bytes_total']: the saved file, deleted vectors included"
    deletes_are = "marked; compact() from a tenth deleted on" if COMPACTS else "marked; they stay"
    replaces_are = "add(replace=True)" if REPLACES else "delete and add"

    def __init__(self, shape):
        self.shape = shape
        self.index = shortlist.Index(shape.dim, metric=shape.metric, codes=CODES, refine=REFINE, m=shape.m)

    def add(self, ids, rows, threads=1):
        self.index.add(rows, ids, threads=threads)

    def delete(self, ids):
        self.index.delete(ids)

    def replace(self, ids, rows):
        if REPLACES:
            self.index.add(rows, ids, threads=1, replace=True)
        else:
            super().replace(ids, rows)

    def tidy(self):
        if COMPACTS:
            stats = self.index.stats()
            if stats["deleted"] > DUE * (stats["n"] + stats["deleted"]):
                self.index.compact()

    def set(self, depth):
        self.ef = depth

    def one(self):
        return functools.partial(self.index.search, k=base.K, ef=self.ef)

    def bytes(self):
        return self.index.stats()["bytes_total"]

    def unreachable(self):
        try:
            return self.index.check(sample=0, threads=1).unreachable
        except shortlist.Error as error:
            if error.report is None or not error.report.unreachable:
                raise
            return error.report.unreachable

    def settings(self):
        return {"m": self.shape.m, "ef_build": self.index.stats()["ef_build"], "codes": CODES, "refine": REFINE}
