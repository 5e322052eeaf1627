"""Makes the files, starts each stage in a process of its own, by turns, and writes what they told; see
docs/internals/bench-storage.md."""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy  # noqa: E402

import keep  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
from setting import commit, machine  # noqa: E402

GROUP = 1000
EF = 64
FORCED = {"PMEM_IS_PMEM_FORCE": "1"}
MEDIA = {"dram": ("dram", {}), "map": ("map", {}), "pmem": ("pmem", {}), "pmem forced": ("pmem", FORCED),
         "map, records": ("map", {}), "pmem, records": ("pmem", FORCED)}
GIB = 2**30


def options():
    parser = argparse.ArgumentParser(prog="./dev bench storage")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data/glove100"),
                        help="folder with base.fbin, queries.fbin and truth.ibin (cosine)")
    parser.add_argument("--rows", type=int, default=0, help="of the base, the first so many; 0 (default): all")
    parser.add_argument("--sizes", type=float, nargs="+", default=(0, 1, 8, 64),
                        help="GiB of the files to open, holes but for an index; 0: without room")
    parser.add_argument("--opens", type=int, default=9, help="processes that open each file at each place")
    parser.add_argument("--rounds", type=int, default=7, help="of all else")
    parser.add_argument("--start", type=int, default=20000, help="rows of the index that is added to")
    parser.add_argument("--groups", type=int, default=10, help="of 1,000 rows, added one after the other")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of adding")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="one thread is pinned to")
    parser.add_argument("--quick", action="store_true",
                        help="little of each, into storage-part.json, which is no record")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"), help="folder of the build")
    parser.add_argument("--work", type=pathlib.Path, help="where the files are made; in the build's folder")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("bench/results"),
                        help="where storage.json and storage.svg go")
    chosen = parser.parse_args()
    chosen.work = chosen.work or chosen.build / "bench/storage/files"
    if chosen.quick:
        chosen.rows, chosen.sizes, chosen.opens, chosen.rounds = 8000, (0, 8), 3, 2
        chosen.start, chosen.groups = 3000, 3
    return chosen


def warm(path):
    """Reads all of a file that is no hole, so that it is in the page cache, whatever the system has dropped since."""
    with open(path, "rb", buffering=0) as file:
        end, at = path.stat().st_size, 0
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # only a hole follows
                return
            hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            os.lseek(file.fileno(), at, os.SEEK_SET)
            while at < hole:
                at += len(file.read(min(hole - at, 2**24)))


class Stages:
    def __init__(self, chosen):
        self.chosen = chosen
        self.data = {name: chosen.data / name for name in ("base.fbin", "queries.fbin", "truth.ibin")}

    def run(self, command, environment=None):
        command = list(map(str, command))
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": str(self.chosen.threads), **(environment or {})})
        if done.returncode != 0:
            sys.exit(f"bench storage: this failed: {' '.join(command)}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def program(self, *arguments, environment=None):
        return self.run([self.chosen.build / "bench/storage/bench_storage", *arguments], environment)

    def pinned(self, *arguments):
        return self.run(["taskset", "-c", self.chosen.cpu, self.chosen.build / "bench/storage/bench_storage",
                         *arguments])

    def command(self, *arguments, environment=None):
        return self.run([self.chosen.build / "shortlist", *arguments, "--json"], environment)[0]

    def cut(self):
        """The first rows of the base alone, and their truth."""
        if not self.chosen.rows:
            return
        rows, dim = numpy.fromfile(self.data["base.fbin"], dtype=numpy.uint32, count=2)
        rows = min(int(rows), self.chosen.rows)
        cut = self.chosen.work / "base.fbin"
        with open(cut, "wb") as file:
            numpy.array([rows, dim], dtype=numpy.uint32).tofile(file)
            numpy.fromfile(self.data["base.fbin"], dtype=numpy.float32, offset=8, count=rows * int(dim)).tofile(file)
        self.data.update({"base.fbin": cut, "truth.ibin": self.chosen.work / "truth.ibin"})
        self.command("truth", cut, self.data["queries.fbin"], "-k", 10, "--metric", "cosine", "-o",
                     self.data["truth.ibin"])

    def shape(self):
        return [int(x) for x in numpy.fromfile(self.data["base.fbin"], dtype=numpy.uint32, count=2)]

    def room(self, gib):
        """Vectors that make a file of at least this size: what is kept free on the upper layers grows with their root."""
        rows, dim = self.shape()
        if not gib:
            return 0
        a_million = self.command("info", "--plan", "--dim", dim, "--n", 1_000_000)["bytes_with_room"]
        return max(rows, int(1.01 * gib * GIB / a_million * 1_000_000))

    def make(self):
        """The index of all rows with each room, and that of the first ones, which is added to."""
        chosen, work = self.chosen, self.chosen.work
        self.files = {gib: work / f"open-{gib:g}.sl" for gib in chosen.sizes}
        self.whole, self.records, self.start = work / "whole.sl", work / "records.sl", work / "start.sl"
        base = self.data["base.fbin"]
        self.program("make", base, self.shape()[0], f"{self.whole}=0", f"{self.records}=0,records",
                     *(f"{path}={self.room(gib)}" for gib, path in self.files.items()))
        # With room to spare, so that both ways of adding in place end with as many as in memory.
        self.program("make", base, chosen.start, f"{self.start}={chosen.start + 2 * chosen.groups * GROUP}")

    def open(self):
        events = []
        for number in range(self.chosen.opens):
            turns = [(path, place) for path in self.files.values() for place in ("map", "pmem")]
            for path, place in turns if number % 2 == 0 else reversed(turns):
                warm(path)
                event = self.pinned("open", path, place, self.data["queries.fbin"])[0]
                events.append({**event, "bytes": path.stat().st_size, "round": number})
            warm(self.whole)
            events += [{**event, "round": number} for event in self.program("copy", self.whole)]
        return events

    def evaluate(self, *arguments, file=None, environment=None):
        return self.command("eval", file or self.whole, self.data["queries.fbin"], self.data["truth.ibin"], "-k", 10, "--ef",
                            EF, "--repeat", 3, *arguments, environment=environment)

    def media(self):
        events = []
        for number in range(self.chosen.rounds):
            for medium in list(MEDIA) if number % 2 == 0 else reversed(list(MEDIA)):
                place, environment = MEDIA[medium]
                warm(self.records if "records" in medium else self.whole)
                told = self.evaluate("--place", place, "--pin", self.chosen.cpu, environment=environment,
                                     file=self.records if "records" in medium else self.whole)
                point = told["points"][0]
                events.append({"event": "qps", "medium": medium, "round": number,
                               **{name: point[name] for name in ("qps", "recall", "p50_us", "p99_us")}})
        return events

    def procs(self):
        """On CPUs of their own; on a machine of one they share it, and say nothing of speed."""
        pin = () if len(os.sched_getaffinity(0)) > 1 else ("--pin", self.chosen.cpu)
        events = []
        for number in range(self.chosen.rounds):
            told = self.evaluate("--procs", "1,2", "--place", "map", *pin)
            pss = {entry["n"]: entry["pss_bytes"] for entry in told["memory"]}
            events += [{"event": "procs", "round": number, "n": one["n"], "qps": one["qps"],
                        "ratio": one["ratio"]["median"], "pss_bytes": pss[one["n"]]}
                       for one in told["points"][0]["procs"]]
        return events

    def insert_ours(self, way):
        place, environment = MEDIA[way]
        copy = self.chosen.work / "adding.sl"
        shutil.copyfile(self.start, copy)
        os.sync()  # not to be paid by the first group
        return self.program("insert", copy, place, self.data["base.fbin"], self.chosen.start, self.chosen.groups,
                            environment=environment)

    def insert_theirs(self, name):
        peers = pathlib.Path(__file__).resolve().parent / "peers.py"
        return self.run([sys.executable, peers, name, self.data["base.fbin"], (self.chosen.work / name).resolve(),
                         self.chosen.start, self.chosen.groups, self.chosen.threads])

    def inserts(self):
        events = []
        for number in range(self.chosen.rounds):
            ways = [*report.OURS, *report.PEERS]
            for way in ways if number % 2 == 0 else reversed(ways):
                groups = self.insert_ours(way) if way in report.OURS else self.insert_theirs(way)
                events += [{**group, "way": way, "round": number} for group in groups]
        return events


def file_system(folder):
    return subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip()


def main():
    chosen = options()
    chosen.work.mkdir(parents=True, exist_ok=True)
    chosen.results.mkdir(parents=True, exist_ok=True)
    stages = Stages(chosen)
    stages.cut()
    rows, dim = stages.shape()
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
             "commit": commit(), "machine": machine(), "file_system": file_system(chosen.work),
             "data": {"name": chosen.data.resolve().name, "rows": rows, "dim": dim},
             "parameters": {"metric": "cosine", "k": 10, "ef": EF, "m": 16, "ef_construction": 200, "codes": "i8",
                            "opens": chosen.opens, "rounds": chosen.rounds, "start": chosen.start,
                            "groups": chosen.groups, "group": GROUP, "threads": chosen.threads, "cpu": chosen.cpu}}
    stages.make()
    events = stages.open() + stages.media() + stages.procs() + stages.inserts()
    summary = report.summarise(events)
    name = chosen.results / ("storage-part" if chosen.quick else "storage")
    keep.record(name.with_suffix(".json"), {**about, "summary": summary})
    plot.draw(about, summary, name.with_suffix(".svg"))
    print(report.table(about, summary))
    shutil.rmtree(chosen.work)


if __name__ == "__main__":
    main()
