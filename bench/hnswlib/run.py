"""Runs the stages of the comparison one after the other and writes what they measured; see docs/internals/bench.md."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import plot  # noqa: E402
import report  # noqa: E402
from setting import commit, machine  # noqa: E402

TARGETS = (0.90, 0.95, 0.99)
CURVE = (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
REFINES = ("none", "bf16", "f32")
PAGES_EF = 128  # where the two settings of hnswlib's memory are compared
FIRST_EF = 64  # of the first query after opening
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def options():
    parser = argparse.ArgumentParser(prog="./dev bench hnswlib")
    parser.add_argument("--program", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data/glove100"),
                        help="folder with base.fbin, queries.fbin and truth.ibin (cosine)")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/bench/hnswlib/indexes"),
                        help="where the indexes are saved")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("bench/results"),
                        help="where hnswlib.json and hnswlib.svg go")
    parser.add_argument("--against", default="hnswlib", choices=("hnswlib", "shortlist"),
                        help="shortlist: against itself, which shows the noise")
    parser.add_argument("--rounds", type=int, default=9, help="of the search at each recall")
    parser.add_argument("--build-rounds", type=int, default=3)
    parser.add_argument("--opens", type=int, default=20, help="fresh processes that open each index")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the builds")
    parser.add_argument("--cpu", type=int, default=-1, help="the searching thread is pinned to; the last one")
    parser.add_argument("--targets", type=float, nargs="+", default=TARGETS, help="recall@10")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and no curve")
    parser.add_argument("--keep", action="store_true", help="use the indexes of the run before, do not build")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.build_rounds, chosen.opens = 3, 1, 5
    return chosen


class Stages:
    """Starts the program and collects the lines it prints."""

    def __init__(self, chosen):
        self.chosen = chosen
        self.peers = ["shortlist", chosen.against]
        self.threads = str(chosen.threads)
        self.folder = chosen.work / chosen.data.resolve().name

    def run(self, *arguments, environment=None):
        command = [str(self.chosen.program.resolve()), *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        if done.returncode != 0:
            sys.exit(f"bench hnswlib: this stage failed: {' '.join(command)}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def index(self, peer, refine="bf16"):
        return self.folder / f"{peer}-{refine}.index"

    def build(self):
        """Both in turn with the refine tier of the comparison, then ours once with the other tiers, for their size."""
        base = ("build", "--base", self.chosen.data / "base.fbin", "--out", self.folder, "--threads",
                self.threads)
        events = self.run(*base, "--peers", ",".join(self.peers), "--rounds", self.chosen.build_rounds)
        for refine in REFINES:
            if refine != "bf16":
                self.run(*base, "--peers", "shortlist", "--rounds", 1, "--refine", refine)
        return events

    def sizes(self):
        files = {("shortlist", refine): self.index("shortlist", refine) for refine in REFINES}
        files[(self.chosen.against, "bf16")] = self.index(self.chosen.against)
        return [{"event": "size", "peer": peer, "refine": refine, "bytes": path.stat().st_size}
                for (peer, refine), path in files.items()]

    def first(self):
        """Time to the first answer, the file being in the page cache; each in a fresh process, by turns."""
        events = []
        for peer in self.peers:
            self.index(peer).read_bytes()
        for _ in range(self.chosen.opens):
            for peer in self.peers:
                events += self.run("first", "--queries", self.chosen.data / "queries.fbin", "--index",
                                   f"{peer}={self.index(peer)}", "--place", "map", "--ef", FIRST_EF)
        return events

    def search(self, sides, *arguments, environment=None):
        indexes = [word for peer in sides for word in ("--index", f"{peer}={self.index(peer)}")]
        return self.run("search", "--queries", self.chosen.data / "queries.fbin", "--truth",
                        self.chosen.data / "truth.ibin", "--cpu", self.chosen.cpu, *indexes, *arguments,
                        environment=environment)

    def pages(self):
        """The peer's memory with small pages and with huge ones, by turns: what suits it better is used."""
        trials = []
        for trial in range(3):
            for huge in (False, True) if trial % 2 == 0 else (True, False):
                events = self.search([self.chosen.against], "--ef", PAGES_EF, "--rounds", 2,
                                     environment=HUGE_PAGES if huge else None)
                trials += [{"event": "pages", "peer": self.chosen.against, "huge": huge, "ef": PAGES_EF,
                            "qps": event["qps"]} for event in events if event["event"] == "pass"]
        return trials


def data_set(folder):
    digest = hashlib.sha256()
    with open(folder / "base.fbin", "rb") as file:
        head = file.read(8)
        digest.update(head)
        while block := file.read(1 << 20):
            digest.update(block)
    rows, dim = struct.unpack("<II", head)
    return {"name": folder.resolve().name, "rows": rows, "dim": dim, "base_sha256": digest.hexdigest()}


def setting(stages):
    chosen = stages.chosen
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": commit(), "machine": machine(),
            "data": data_set(chosen.data),
            "peers": [event for event in stages.run("about") if event["peer"] in stages.peers],
            "parameters": {"metric": "cosine", "k": 10, "m": 16, "ef_construction": 200, "codes": "i8",
                           "refine": "bf16", "build_threads": chosen.threads, "rounds": chosen.rounds,
                           "build_rounds": 0 if chosen.keep else chosen.build_rounds, "opens": chosen.opens}}


def main():
    chosen = options()
    chosen.results.mkdir(parents=True, exist_ok=True)
    stages = Stages(chosen)
    stages.folder.mkdir(parents=True, exist_ok=True)
    about = setting(stages)
    events = [] if chosen.keep else stages.build()
    events += stages.sizes() + stages.first()
    trials = stages.pages()
    median = {huge: statistics.median(t["qps"] for t in trials if t["huge"] == huge) for huge in (False, True)}
    environment = HUGE_PAGES if median[True] > median[False] else None
    about["search_environment"] = environment or {}
    events += trials + stages.search(stages.peers, "--targets", ",".join(map(str, chosen.targets)), "--rounds",
                                     chosen.rounds, environment=environment)
    curve = []
    if not chosen.quick:
        curve = stages.search(stages.peers, "--ef", ",".join(map(str, CURVE)), "--rounds", 2,
                              environment=environment)
    summary = report.summarise(stages.peers, about, events)
    name = chosen.results / ("hnswlib" if chosen.against == "hnswlib" else f"against-{chosen.against}")
    name.with_suffix(".json").write_text(json.dumps({**about, "summary": summary, "events": events, "curve": curve},
                                                    indent=1) + "\n")
    if curve:
        plot.draw(curve, stages.peers, about, name.with_suffix(".svg"))
    print(report.table(stages.peers, about, summary))
    print(report.markdown(stages.peers, about, summary))


if __name__ == "__main__":
    main()
