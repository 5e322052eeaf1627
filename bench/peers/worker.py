"""One library's index, loaded in a process pinned to one core, which answers the driver's orders a line each."""

import gc
import json
import os
import pathlib
import sys
import time

from executed import stepped


def resident():
    """Bytes of memory that are this process's own share (PSS)."""
    for line in pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


class Worker:
    def __init__(self, order):
        import engines
        import numpy
        import sets

        self.numpy, self.sets = numpy, sets
        data = sets.Data(order["data"], order["metric"])
        library = engines.engine(order["engine"])
        before = resident()
        started = time.perf_counter()
        self.index = library.Index(data, order["settings"], pathlib.Path(order["folder"]))
        self.loaded_s = time.perf_counter() - started
        self.parts = {}
        for name in ("tune", "measure"):
            queries, native, truth = data.part(name)
            self.parts[name] = (native if self.index.native else queries, truth)
        self.rows = {name: self.index.rows(queries) for name, (queries, _) in self.parts.items()}
        del data
        self.index.set(order["warm"])
        self.index.batch(self.parts["tune"][0])
        gc.collect()
        self.grown = resident() - before

    def hello(self):
        return {"load_s": self.loaded_s, "resident": self.grown}

    def batch_pass(self, part):
        return self.index.batch(self.parts[part][0])

    def one_pass(self, part):
        call = self.index.one()
        for row in self.rows[part]:
            call(row)

    def recall(self, part, mode, answer):
        """Gives the recall of the last pass in one call. Single queries are asked anew: timing keeps none of their
        answers."""
        truth = self.parts[part][1]
        if mode == "batch":
            return self.sets.recall(self.index.ids(answer), truth)
        call = self.index.one()
        found = self.numpy.full((len(truth), self.sets.K), -1, self.numpy.int64)
        for at, row in enumerate(self.rows[part]):
            ids = self.index.id_row(call(row))[:self.sets.K]
            found[at, :len(ids)] = ids
        return self.sets.recall(found, truth)

    def measure(self, order):
        """Speed, and where asked recall, of a setting: at least `seconds` of whole passes over the part's queries.

        A pass before the clock starts: a process that was just started has yet to be given the pages it reads.
        """
        self.index.set(order["params"])
        part, mode = order["part"], order["mode"]
        run = self.one_pass if mode == "one" else self.batch_pass
        if order["seconds"] > 0:
            run(part)
        took, passes = 0.0, 0
        started, worked = time.perf_counter(), time.process_time()
        while took < order["seconds"] or passes == 0:
            answer = run(part)
            passes += 1
            took = time.perf_counter() - started
        worked = time.process_time() - worked
        queries = passes * len(self.parts[part][1])
        result = {"qps": queries / took, "cpu_qps": queries / worked, "passes": passes}
        if order["recall"]:
            result["recall"] = self.recall(part, mode, answer)
        return result

    def executed(self, order):
        """Counts the instructions of single queries."""
        self.index.set(order["params"])
        return stepped(order["count"], self.index.one(), self.rows["tune"])


def main():
    order = json.loads(sys.argv[1])
    os.sched_setaffinity(0, {order["cpu"]})
    # The libraries print; what they print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(order)

    def say(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    say(worker.hello())
    for line in sys.stdin:
        order = json.loads(line)
        say(worker.executed(order) if "count" in order else worker.measure(order))
    os._exit(0)  # some of the libraries fail while being unloaded


if __name__ == "__main__":
    main()
