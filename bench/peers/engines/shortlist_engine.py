"""Shortlist by its Python module."""

import functools

import shortlist

from choose import Sweep
from sets import K

from . import base

PACKAGE = "shortlist"
OURS = True
TYPES = {"uint8": "u8", "int8": "i8", "float32": "f32"}


def variants(data):
    def variant(m, codes):
        return base.Variant(f"{codes} M={m}", {"m": m, "codes": codes, "refine": "bf16", "ef_build": 200},
                            Sweep("ef", K, 4096, rerank=(0, 20, 40, 80)))

    return [variant(m, codes) for codes in ("i8", "i4") for m in (16, 32)]


def build(data, settings, threads, folder):
    whole = data.raw.dtype.kind in "iu"  # whole numbers are kept exactly and need no finer copy
    dtype = TYPES[data.raw.dtype.name]
    try:
        index = shortlist.Index(data.dim, metric=data.metric, codes=settings["codes"], m=settings["m"],
                                refine=None if whole else settings["refine"],
                                ef_build=settings["ef_build"], dtype=dtype)
    except (ValueError, TypeError, KeyError, shortlist.Error) as problem:
        raise base.Skip(f"refused by the module: {problem}") from problem
    index.add(data.raw, threads=threads)
    index.save(folder / "index.sl")


class Index(base.Index):
    native = True

    def __init__(self, data, settings, folder):
        self.index = shortlist.open(folder / "index.sl")
        self.params = {}

    def set(self, params):
        self.params = params

    def batch(self, queries):
        return self.index.search(queries, K, threads=1, **self.params)

    def one(self):
        return functools.partial(self.index.search, k=K, threads=1, **self.params)
