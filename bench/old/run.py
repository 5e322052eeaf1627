"""Searches and builds with the commands of two commits by turns; see docs/internals/bench.md."""

import argparse
import datetime
import filecmp
import json
import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import report  # noqa: E402
from setting import commit, machine  # noqa: E402

K = 10
MOST_PASSES = 30
METRICS = {"glove100-ip": "ip", "sift128": "l2", "synth": "ip"}  # the other sets are made for cosine


def numbers(text):
    return [int(word) for word in text.split(",")]


def words(text):
    return text.split(",")


def options():
    parser = argparse.ArgumentParser(prog="./dev bench old", description="Compares this tree with another commit.")
    parser.add_argument("old", metavar="REV", help="the other commit")
    parser.add_argument("sets", nargs="*", default=["glove100", "gloss384"], metavar="SET",
                        help="data sets of ./dev data (glove100 gloss384)")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each commit (9)")
    parser.add_argument("--codes", type=words, default=["i4", "i8"], help="i4,i8")
    parser.add_argument("--ef", type=numbers, default=[16, 100, 640], help="values of ef_search (16,100,640)")
    parser.add_argument("--repeat", type=int, default=3, 
                        help="passes over the queries a turn at the largest ef, more at others; their median counts (3)")
    parser.add_argument("--vectors", type=int, default=50_000, help="rows that a build adds; 0: all (50000)")
    parser.add_argument("--threads", type=numbers, default=[1], help="of the builds, such as 1,2; 0: all (1)")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--searches-only", action="store_true")
    only.add_argument("--builds-only", action="store_true")
    parser.add_argument("--least-search", type=float, default=0.98, help="median ratio asked of searches (0.98)")
    parser.add_argument("--least-build", type=float, default=0.97, help="median ratio asked of builds (0.97)")
    parser.add_argument("--other-results", action="store_true",
                        help="recall, ids and bytes may differ between the commits: tell, do not judge")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the core of all on one thread")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"), help="folder of this tree's build")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE", help="write every turn as JSON")
    chosen = parser.parse_args()
    if min([chosen.rounds, chosen.repeat, *chosen.ef]) < 1 or min([chosen.vectors, *chosen.threads]) < 0:
        parser.error("ask for at least 1 round, 1 pass and ef 1, and for no negative number")
    chosen.folder = chosen.build / "old" / chosen.old
    return chosen


class Turns:
    """Both commands over one set. Indexes to search are built once, by the old command, and kept."""

    def __init__(self, chosen, name):
        self.chosen = chosen
        self.name = name
        self.data = pathlib.Path("data") / name.replace(":", "-")
        self.base = next((self.data / ("base" + end) for end in (".fbin", ".u8bin") if (self.data / ("base" + end)).exists()),
                         None)
        if self.base is None:
            sys.exit(f"bench old: {self.data} holds no base.fbin or base.u8bin; ./dev data {name} makes it")
        self.queries = self.data / ("queries" + self.base.suffix)
        self.metric = METRICS.get(name.partition(":")[0], "cosine")
        self.work = chosen.folder / "work" / self.data.name
        self.work.mkdir(parents=True, exist_ok=True)
        self.commands = {"old": chosen.folder / "build/shortlist", "new": chosen.build / "shortlist"}

    def call(self, side, *arguments, pinned=True):
        command = [str(word) for word in (self.commands[side], *arguments, "--json")]
        pin = (lambda: os.sched_setaffinity(0, {self.chosen.cpu})) if pinned else None
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, preexec_fn=pin)
        if done.returncode != 0:
            sys.exit(f"bench old: this failed: {' '.join(command)}")
        return json.loads(done.stdout)

    def build(self, side, codes, base, output, threads):
        return self.call(side, "build", base, "-o", output, "--metric", self.metric, "--codes", codes,
                         "--threads", threads, pinned=threads == 1)

    def index(self, codes):
        path = self.work / f"{codes}.sl"
        if not path.exists():
            self.build("old", codes, self.base, path, 0)
        return path

    def first_rows(self):
        """The base, or a file of its first rows."""
        if self.chosen.vectors == 0:
            return self.base
        with open(self.base, "rb") as base:
            n, dim = struct.unpack("<II", base.read(8))
            rows = min(n, self.chosen.vectors)
            cut = (self.work / f"first{rows}").with_suffix(self.base.suffix)
            if not cut.exists():
                half = cut.with_suffix(".new")
                half.write_bytes(struct.pack("<II", rows, dim) +
                                 base.read(rows * dim * (1 if base.name.endswith(".u8bin") else 4)))
                half.rename(cut)
        return cut

    def ids(self, codes):
        """One pass by each commit over the old one's index; the answers are compared as files."""
        for ef in self.chosen.ef:
            outputs = {side: self.work / f"{side}.ibin" for side in report.SIDES}
            for side, output in outputs.items():
                self.call(side, "search", self.index(codes), self.queries, "-k", K, "--ef", ef, "--threads", 1,
                          "-o", output)
            yield {"event": "same", "what": "answers", "name": f"{self.name} {codes} ef {ef}",
                   "same": filecmp.cmp(outputs["old"], outputs["new"], shallow=False)}

    def search(self, order, number, codes, ef):
        passes = self.passes(ef)
        for side in order:
            told = self.call(side, "eval", self.index(codes), self.queries, self.data / "truth.ibin", "-k", K, "--ef", ef,
                             "--repeat", passes, "--threads", 1)
            yield {"event": "search", "set": self.name, "codes": codes, "ef": ef, "side": side, "round": number,
                   **{field: told["points"][0][field] for field in ("qps", "recall", "evaluations")}}

    def passes(self, ef):
        """More for a small ef, whose pass is short."""
        return min(self.chosen.repeat * -(-max(self.chosen.ef) // ef), MOST_PASSES)

    def builds(self, order, number, codes, threads):
        outputs = {side: self.work / f"{side}.sl" for side in report.SIDES}
        for side in order:
            told = self.build(side, codes, self.first_rows(), outputs[side], threads)
            yield {"event": "build", "set": self.name, "codes": codes, "threads": threads, "side": side,
                   "round": number, **{field: told[field] for field in ("n", "build_s", "rows_per_s")}}
        if threads == 1:  # with more, the order of adding is anybody's
            yield {"event": "same", "what": "files", "name": f"{self.name} {codes}",
                   "same": filecmp.cmp(outputs["old"], outputs["new"], shallow=False)}
        for output in outputs.values():
            output.unlink()

    def round(self, number):
        order = report.SIDES if number % 2 == 0 else report.SIDES[::-1]
        for codes in self.chosen.codes:
            if not self.chosen.builds_only:
                for ef in self.chosen.ef:
                    yield from self.search(order, number, codes, ef)
            if not self.chosen.searches_only:
                for threads in self.chosen.threads:
                    yield from self.builds(order, number, codes, threads)


def main():
    chosen = options()
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "old": chosen.old,
             "new": commit(), "machine": machine(),
             "parameters": {"k": K, **{name: getattr(chosen, name) for name in
                                       ("sets", "codes", "ef", "rounds", "repeat", "vectors", "threads", "cpu")}}}
    turns = [Turns(chosen, name) for name in chosen.sets]
    events = []
    if not chosen.builds_only:
        for turn in turns:
            for codes in chosen.codes:
                events += turn.ids(codes)
    for number in range(chosen.rounds):
        print(f"bench old: round {number + 1} of {chosen.rounds}", file=sys.stderr)
        for turn in turns:
            events += turn.round(number)
    summary = report.summarise(events, chosen.least_search, chosen.least_build, chosen.other_results)
    if chosen.record:
        chosen.record.write_text(json.dumps({**about, "summary": summary, "events": events}, indent=1) + "\n")
    print(report.table(about, summary))
    sys.exit(0 if report.passed(summary) else 1)


if __name__ == "__main__":
    main()
