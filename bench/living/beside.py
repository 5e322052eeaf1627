"""Searches on one core beside a writer on another, and adds by two threads, without Python (beside.cpp)."""

import json
import os
import sys

import numpy
import report
import truth
from contender import ONE_THREAD
from curves import EFS
from handle import one_handle
from process import Lost, Worker
from setting import ROOT, output_of
from sets import read_matrix

NAMES = ("shortlist", "hnswlib", "usearch")
TARGET = 0.95  # the recall that chooses ef
CHOOSES = 500  # queries that choose it
THREADS = 2  # that add
SHAPE, RATE = "small", 1000  # of the net that ranks (bench/rank/shapes.c); updates a second


def note(text):
    print(f"bench living: {text}", file=sys.stderr, flush=True)


def may(library, chosen):
    """Tells whether threads may change the library's index while others search it."""
    if library != "shortlist" or chosen.one_handle == "yes":
        return True
    return chosen.one_handle == "auto" and one_handle((ROOT / "include/shortlist.h").read_text(encoding="utf-8"))


def cores(chosen):
    """(core of the searches, another one); None: there is no other."""
    others = sorted(os.sched_getaffinity(0) - {chosen.cpu})
    return (chosen.cpu, others[0]) if others else None


class Contender:
    """A program that holds an index of the first live rows."""

    def __init__(self, library, chosen, data_rows, m, live, at):
        self.library, self.both = library, may(library, chosen)
        command = [chosen.build / f"bench/peers/native/native_beside_{library}", data_rows.base,
                   data_rows.queries["measure"], data_rows.metric, m, live, *at]
        self.worker = Worker([str(word) for word in command], {**os.environ, **ONE_THREAD, "OMP_NUM_THREADS": "2"},
                             chosen.work / f"beside-{library}.log")
        self.worker.ask("build")

    def tune(self, near):
        """The least ef of the ladder that reaches the recall, or its last."""
        for ef in map(int, EFS.split(",")):
            found = self.worker.ask(f"ids {ef} {len(near)}")["ids"]
            recall = float(numpy.mean([len(set(f) & set(t)) / len(t) for f, t in zip(found, near.tolist())]))
            if recall >= TARGET:
                break
        self.ef = ef
        return {"event": "ef", "library": self.library, "ef": ef, "recall": recall}

    def windows(self, number, seconds):
        """Windows without the writer, beside one of another index, and beside ours; every other round the other way
        about."""
        kinds = ("idle", "apart", "beside") if self.both else ("idle",)
        for kind in kinds if number % 2 == 0 else kinds[::-1]:
            yield {"event": kind, "library": self.library, "round": number,
                   **self.worker.ask(f"{kind} {self.ef} {seconds}")}

    def adds(self, number, count):
        """Rows a second of THREADS threads: by the call for many rows, and one row a call."""
        for how in ("many", "one"):
            if how == "one" and not self.both:
                continue
            self.worker.ask("build")
            took = self.worker.ask(f"adds {THREADS} {count} {how}")["s"]
            if took is not None:
                yield {"event": "adds", "library": self.library, "round": number, "how": how, "rows_per_s": count / took}


def turns(found, number, act):
    """Lets all that are left act, each round beginning with another one. One that fails leaves."""
    shift = number % max(1, len(found))
    for contender in found[shift:] + found[:shift]:
        try:
            yield from act(contender)
        except Lost as why:
            found.remove(contender)
            yield {"event": "failed", "library": contender.library, "why": str(why)}


def requests(chosen, rows, live, at):
    """Requests to a recommender of candidates by the net `SHAPE`, idle and while items change RATE times a second."""
    program = chosen.build / "bench/living/bench_requests"
    if not program.exists():
        return {"why": "bench_requests was not built; it needs the ranker"}
    note("requests beside updates")
    said = output_of("living", program, SHAPE, rows.base, rows.queries["measure"], live, chosen.rounds, chosen.seconds,
                     RATE, int(may("shortlist", chosen)), *at)
    return {"shape": SHAPE, "rate": RATE, **report.requests([json.loads(line) for line in said.splitlines()])}


def measured(chosen, data, m):
    """All events of a set, and what they were measured with."""
    at, live = cores(chosen), chosen.live_beside
    if at is None:
        return {"why": "searches beside a writer need two cores"}
    rows = truth.Rows(data, 3 * live, chosen.work)
    live = min(live, len(rows) // 2)
    queries = read_matrix(rows.queries["measure"])[:CHOOSES]
    near = truth.nearest(rows.rows[:live], numpy.arange(live), queries, rows.metric)
    events, found = [], []
    for library in [name for name in NAMES if name in chosen.libraries]:
        note(f"{data.name}: {library} beside a writer")
        try:
            found.append(Contender(library, chosen, rows, m, live, at))
        except Lost as why:
            events.append({"event": "failed", "library": library, "why": str(why)})
    events += turns(found, 0, lambda one: [one.tune(near)])
    for number in range(chosen.rounds):
        events += turns(found, number, lambda one: one.windows(number, chosen.seconds))
    for number in range(chosen.rounds):
        events += turns(found, number, lambda one: one.adds(number, live // 2))
    for contender in found:
        contender.worker.stop()
    return {"live": live, "seconds": chosen.seconds, "threads": THREADS, "recall": TARGET,
            "one_handle": may("shortlist", chosen), "libraries": report.beside(events),
            **({"requests": requests(chosen, rows, live, at)} if "shortlist" in chosen.libraries else {})}
