"""One library in a process pinned to one core: it tunes, or runs a runbook, and prints a line of JSON for each step."""

import gc
import json
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "peers"), str(HERE.parent)]

import libraries  # noqa: E402
import numpy  # noqa: E402
import runbooks  # noqa: E402
import worker  # noqa: E402
from curves import EFS  # noqa: E402
from executed import stepped  # noqa: E402
from libraries.base import K, Shape  # noqa: E402
from sets import read_matrix  # noqa: E402

LADDER = [int(ef) for ef in EFS.split(",")]
WARM = 50  # queries before the clock starts
SAMPLE = 1000  # stored vectors that are searched for
DEEP = 640  # the depth at which they have to be found


def timed(call, *arguments):
    """(seconds by the wall clock, seconds of the processor) of a call."""
    started, worked = time.perf_counter(), time.process_time()
    call(*arguments)
    return time.perf_counter() - started, time.process_time() - worked


def per_query(found, truth):
    """The recall of each query."""
    return numpy.array([len(set(f[:K]) & set(t)) / len(t) for f, t in zip(found, truth.tolist())])


class Passes:
    """Passes of single queries over one index at one depth."""

    def __init__(self, index, queries, depth):
        self.index, self.depth, self.asked = index, depth, index.rows(queries)

    def call(self):
        self.index.set(self.depth)
        return self.index.one()

    def warm(self):
        call = self.call()
        for row in self.asked[:WARM]:
            call(row)

    def take(self):
        """(ids of each query, ns of each query, µs of the processor a query)."""
        call, clock = self.call(), time.perf_counter_ns
        answers, took = [], numpy.empty(len(self.asked), numpy.int64)
        gc.disable()  # Python's would run inside queries
        worked = time.process_time()
        for at, row in enumerate(self.asked):
            before = clock()
            answer = call(row)
            took[at] = clock() - before
            answers.append(answer)
        worked = time.process_time() - worked
        gc.enable()
        return [self.index.ids(answer).tolist() for answer in answers], took, 1e6 * worked / len(self.asked)


def microseconds(took):
    p50, p99 = numpy.percentile(took, (50, 99)) / 1000
    return {"us": float(took.mean()) / 1000, "p50_us": float(p50), "p99_us": float(p99)}


class Runner:
    def __init__(self, order):
        self.order = order
        self.library = libraries.library(order["library"]).Living
        self.rows = read_matrix(order["base"])
        self.queries = {part: read_matrix(path) for part, path in order["queries"].items()}
        self.room = order["room"]

    def make(self, sample):
        return self.library(Shape(self.rows.shape[1], self.order["metric"], self.order["m"], self.room, sample))

    def sample(self, operations):
        """The rows of the first insert, where it fills half of the room; else all rows."""
        first = operations[0]
        return self.rows[first.rows] if 2 * len(first.rows) > self.room else self.rows

    def fresh(self, ids, rows):
        """A new index of these vectors, added in one call."""
        vectors = self.rows[rows]
        index = self.make(vectors)
        index.add(ids, vectors)
        return index

    # ------------------------------------------------------------------------------------------------ settings

    def tune(self, say):
        """The least depth of the ladder that reaches each target on the tuning queries, in a fresh index."""
        with numpy.load(self.order["live"]) as live:
            ids, rows, truth = live["ids"], live["rows"], live["truth"]
        index = self.fresh(ids, rows)
        tried = []
        for depth in LADDER:
            passes = Passes(index, self.queries["tune"][:len(truth)], depth)
            found, took, _ = passes.take()
            tried.append({"depth": depth, "recall": float(per_query(found, truth).mean()), **microseconds(took)})
            if tried[-1]["recall"] >= max(self.order["targets"]):
                break
        say({"event": "tuned", "tried": tried, "depth_is": index.depth, "settings": index.settings(),
             **{name: getattr(index, name) for name in ("bytes_are", "deletes_are", "replaces_are")},
             **({"executed": self.executed(passes)} if self.order["counts"] else {})})

    def executed(self, passes):
        """Counts of the library's own instructions during single queries; see bench/peers/native/instructions.c."""
        if not self.order["instructions"]:
            return {"why": "the program that counts instructions was not built"}
        return stepped(self.order["instructions"], passes.call(), passes.asked)

    # ------------------------------------------------------------------------------------------------ a runbook

    def run(self, say):
        truth = read_matrix(self.order["truth"], numpy.uint32)
        operations = runbooks.load(self.order["runbook"])
        before = worker.resident()
        index = self.make(self.sample(operations))
        queries = self.queries["measure"][:self.order["count"]]
        self.truth = truth.reshape(-1, len(queries), K)
        self.passed, self.took = 0, {depth: [] for depth in self.order["depths"]}
        changes = {runbooks.INSERT: lambda one: index.add(one.ids, self.rows[one.rows]),
                   runbooks.DELETE: lambda one: index.delete(one.ids),
                   runbooks.REPLACE: lambda one: index.replace(one.ids, self.rows[one.rows])}
        for number, (one, ids, rows) in enumerate(runbooks.replay(operations)):
            about = {"event": runbooks.KINDS[one.kind], "step": number, "live": len(ids)}
            if one.kind in changes:
                seconds, worked = timed(changes[one.kind], one)
                tidy, tidied = timed(index.tidy) if one.kind != runbooks.INSERT else (0, 0)
                say({**about, "vectors": len(one.ids), "s": seconds, "cpu_s": worked, "tidy_s": tidy,
                     "tidy_cpu_s": tidied})
                continue
            memory = worker.resident() - before if self.order["memory"] else None
            searched = self.compare if one.kind == runbooks.COMPARE else self.search
            say({**about, "bytes": index.bytes(), "resident": memory, "unreachable": index.unreachable(),
                 **searched(index, queries, ids, rows)})
            self.passed += 1
        everything = [{"depth": depth, **microseconds(numpy.concatenate(took))} for depth, took in self.took.items()]
        say({"event": "all", "searches": everything, "lost": self.lost(index, ids, rows)})

    def search(self, index, queries, ids, rows):
        told = []
        for depth in self.order["depths"]:
            passes = Passes(index, queries, depth)
            passes.warm()
            found, took, worked = passes.take()
            self.took[depth].append(took)
            told.append({"depth": depth, "recall": float(per_query(found, self.truth[self.passed]).mean()),
                         "cpu_us": worked, **microseconds(took)})
        return {"searches": told}

    def compare(self, index, queries, ids, rows):
        """The same searches here and in a fresh build of the same vectors, by turns."""
        made = []
        seconds, worked = timed(lambda: made.append(self.fresh(ids, rows)))
        told = []
        for depth in self.order["depths"]:
            sides = [Passes(one, queries, depth) for one in (index, made[0])]
            told.append({"depth": depth, **self.by_turns(sides, depth)})
        fresh = {"build_s": seconds, "build_cpu_s": worked, "bytes": made[0].bytes(),
                 "unreachable": made[0].unreachable(), "lost": self.lost(made[0], ids, rows)}
        made.clear()
        gc.collect()
        return {"searches": told, "fresh": fresh, "lost": self.lost(index, ids, rows)}

    def by_turns(self, sides, depth):
        rounds = []
        for side in sides:
            side.warm()
        for number in range(self.order["rounds"]):
            took = {}
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                took[side] = sides[side].take()
            self.took[depth].append(took[0][1])
            rounds.append(took)
        recalls = [per_query(rounds[-1][side][0], self.truth[self.passed]) for side in (0, 1)]
        differences = recalls[1] - recalls[0]
        return {"recall": float(recalls[0].mean()), "fresh_recall": float(recalls[1].mean()),
                "error": float(differences.std() / numpy.sqrt(len(differences))),
                **microseconds(numpy.concatenate([took[0][1] for took in rounds])),
                "turns": {clock: [[of(took[side]) for side in (0, 1)] for took in rounds] for clock, of in
                          (("wall", lambda one: float(one[1].mean()) / 1000), ("cpu", lambda one: one[2]))}}

    def lost(self, index, ids, rows):
        """{sampled, lost}: stored vectors that a deep search for themselves does not find. Rows are all different."""
        chosen = numpy.random.default_rng(len(ids)).permutation(len(ids))[:SAMPLE]
        index.set(DEEP)
        call = index.one()
        asked = index.rows(self.rows[rows[chosen]])
        lost = sum(int(id_) not in index.ids(call(row)).tolist() for id_, row in zip(ids[chosen], asked))
        return {"sampled": len(chosen), "lost": lost}


def main():
    order = json.loads(sys.argv[1])
    os.sched_setaffinity(0, {order["cpu"]})
    # Libraries print; their lines must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(told):
        answers.write(json.dumps(told) + "\n")
        answers.flush()

    runner = Runner(order)
    say({"event": "hello"})
    (runner.run if "runbook" in order else runner.tune)(say)
    say({"event": "end"})
    os._exit(0)  # some libraries fail while being unloaded


if __name__ == "__main__":
    main()
