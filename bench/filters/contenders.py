"""Who is asked: ours by every strategy, the peers, and a scan of the allowed rows. Each has a process of its own."""

import math
import os
import pathlib
import sys
import types

import cells
from choose import Sweep
from contender import ONE_THREAD, Contender
from engines.base import Variant
from lineup import version
from process import Worker
from sets import K

HERE = pathlib.Path(__file__).resolve().parent
EFS = (10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
       16384)
TARGET = 0.95
SLOW_US = 10000  # a query: no deeper setting is tried
MOST_S = 0.4  # of a pass over the queries

# Faiss, hnswlib and usearch, each with its filter. ACORN is in no package of Faiss: faiss-cpu has no such index.
GRAPHS = {"hnswlib": "hnswlib M=32", "usearch": "usearch bf16 M=32", "faiss": "faiss HNSW M=32"}
PACKAGES = {"hnswlib": "hnswlib", "usearch": "usearch", "faiss": "faiss-cpu"}


def versions():
    return {name: version(package) for name, package in PACKAGES.items()}


class Process:
    """A program that takes the orders of native.cpp. `prepared`: its queries have length one under cosine."""

    def __init__(self, command, log, prepared, clock):
        self.prepared, self.rate = prepared, {"wall": "qps", "cpu": "cpu_qps"}[clock]
        self.worker = Worker([str(word) for word in command], {**os.environ, **ONE_THREAD}, log)

    def cell(self, files, filtered):
        raw, prepared, bits = files
        order = ["cell", prepared if self.prepared else raw, bits if filtered else "-", MOST_S]
        return self.worker.ask(" ".join(map(str, order)))

    def measure(self, seconds, ids, settings):
        """The answer of the program, and "us" a query."""
        told = self.worker.ask(" ".join(map(str, [seconds, int(ids), *settings])))
        return {**told, "us": 1e6 / told[self.rate]}

    def stop(self):
        self.worker.stop()


class Entry:
    """One line of the table: a process, and a ladder of settings from the cheapest on."""

    def __init__(self, name, process, ladder=((0,),), kind="peer", filtered=True):
        self.name, self.process, self.ladder, self.kind, self.filtered = name, process, ladder, kind, filtered

    def cheapest(self, cell):
        """The first setting that reaches the recall, and all that was tried. A query that takes too long ends the
        ladder."""
        truth, tried = cell.truth if self.filtered else cell.everywhere, []
        for setting in self.ladder:
            told = self.process.measure(0, True, setting)
            point = {"setting": list(setting), "recall": cells.recall(told.pop("ids"), truth), "us": told["us"]}
            tried.append({**point, **per_query(told)})
            if point["recall"] >= TARGET or point["us"] > SLOW_US:
                break
        best = max(tried, key=lambda p: p["recall"])
        chosen = tried[-1] if tried[-1]["recall"] >= TARGET else best
        return {"name": self.name, "kind": self.kind, "reached": chosen["recall"] >= TARGET, **chosen, "tried": tried}


def per_query(told):
    """Counts of an answer, a query."""
    asked = told["answered"]
    counts = {name: told[name] / asked for name in ("evaluations", "results") if name in told}
    if "strategies" in told:
        counts["strategies"] = {name: count / asked for name, count in told["strategies"].items()}
    return counts


def inverted(data):
    lists = round(4 * math.sqrt(data.count))
    steps = [n for n in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
             if n < lists] + [lists]
    return Variant(f"IVF{lists} Flat", {"factory": f"IVF{lists},Flat", "lists": lists},
                   Sweep("nprobe", 1, lists)), [(n,) for n in steps]


def built(chosen, data, key):
    """{name: (library, folder, ladder)} of the peers, each built where it is not kept yet."""
    import engines

    made = {}
    for library, name in GRAPHS.items():
        engine = engines.engine(library)
        variant = next(v for v in engine.variants(data) if f"{library} {v.name}" == name)
        made[name] = (library, variant, [(ef,) for ef in EFS])
    variant, ladder = inverted(data)
    made[f"faiss {variant.name}"] = ("faiss", variant, ladder)
    made["faiss Flat"] = ("faiss", Variant("Flat", {"factory": "Flat"}, Sweep("none", 0, 0)), [(0,)])
    how = types.SimpleNamespace(work=chosen.work / "peers", threads=chosen.threads, build_limit=3600, keep=False)
    found = {}
    for name, (library, variant, ladder) in made.items():
        contender = Contender(how, data, library, variant, version(PACKAGES[library]), key)
        print(f"bench filters: {data.name}: {name}", file=sys.stderr, flush=True)
        contender.build()
        if contender.skip:
            sys.exit(f"bench filters: {name} was not built: {contender.skip}")
        found[name] = (library, contender.folder, ladder)
    return found


def peers(chosen, data, files, key, log):
    """An entry for each peer, and the scan. `files`: of any cell."""
    _, queries, _ = files
    worker = [sys.executable, HERE / "worker.py", chosen.cpu, K]
    scan = Process([*worker, "scan", data.base_path, data.metric], log("scan"), True, chosen.clock)
    entries = [Entry("scan", scan, kind="scan")]
    for name, (library, folder, ladder) in (built(chosen, data, key).items() if chosen.peers else ()):
        if library == "faiss":
            command = [*worker, "faiss", folder / "index.faiss"]
        else:
            command = [chosen.native / f"native_{library}",
                       folder / {"hnswlib": "index.bin", "usearch": "index.usearch"}[library], queries, data.metric,
                       chosen.cpu, K]
        entries.append(Entry(name, Process(command, log(name), True, chosen.clock), ladder))
    return entries


def ours(chosen, data, index, files, log):
    """An entry for each strategy that the program names, for the library's own choice, and for no filter. `files`: of
    any cell."""
    queries, _, _ = files
    command = [chosen.native / "native_filters", index, queries, data.metric, chosen.cpu, K]
    unfiltered, filtered = (Process(command, log(name), False, chosen.clock) for name in ("unfiltered", "ours"))
    names = list(filtered.measure(0, False, (K, 0, 0))["strategies"])
    entries = [Entry("unfiltered", unfiltered, [(ef, 0, 0) for ef in EFS], "unfiltered", filtered=False)]
    entries += [Entry("auto", filtered, [(ef, 0, 0) for ef in EFS], "auto"),
                Entry("recall=0.95", filtered, [(K, 0, 1000 * TARGET)], "tuned")]
    return entries + [Entry(name, filtered, [(ef, number, 0) for ef in EFS], "forced")
                      for number, name in enumerate(names, 1)]
