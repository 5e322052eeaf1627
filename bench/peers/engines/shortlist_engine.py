"""Shortlist by its Python module."""

import functools

import shortlist

from choose import Sweep
from sets import K

from . import base

PACKAGE = "shortlist"
NATIVE = base.Native("native_shortlist", "index.sl", base.param("thousandths"))
OURS = True
MODES_DIFFER = True  # many queries in one call may scan partitions, one alone walks the graph
TYPES = {"uint8": "u8", "int8": "i8", "float32": "f32"}


# The recalls that the index is tuned for, in thousandths. The sweep takes the first that reaches a recall.
TARGETS = (800, 850, 880, 900, 903, 906, 910, 930, 950, 952, 955, 960, 970, 980, 990, 991, 992, 994, 996)


class Targets(Sweep):
    """The recalls that the index was tuned for on the tuning queries, in place of settings of its own."""

    def __init__(self):
        super().__init__("thousandths", TARGETS[0], TARGETS[-1])

    def ladder(self):
        return list(TARGETS)


def variants(data):
    def variant(m, codes, refine):
        return base.Variant(f"{codes} M={m}", {"m": m, "codes": codes, "refine": refine, "ef_build": 200,
                                               "tuned": list(TARGETS)}, Targets())

    # 18: the most links with which 100 dimensions need no more bytes than SVS's LVQ4x8 of degree 32.
    return [variant(m, codes, refine) for codes, refine, ms in (("i8", "bf16", (16, 32)), ("i4", None, (16, 18, 32)))
            for m in ms]


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
    _, queries, truth = data.part("tune")
    index.tune(queries, k=K, truth=truth[:, :K], targets=[target / 1000 for target in TARGETS], threads=threads)
    index.save(folder / "index.sl")


class Index(base.Index):
    native = True

    def __init__(self, data, settings, folder):
        self.index = shortlist.open(folder / "index.sl")
        self.params = {}

    def set(self, params):
        wanted = params["thousandths"] / 1000
        # The highest it can, where tuning found that this recall is out of reach.
        reached = [one.target for one in self.index.tuned() if one.reached]
        self.params = {"recall": min(wanted, max(reached))}

    def batch(self, queries):
        return self.index.search(queries, K, threads=1, **self.params)

    def one(self):
        return functools.partial(self.index.search, k=K, threads=1, **self.params)
