"""Builds the indexes, measures each against the time of its evaluations; see docs/internals/bench.md."""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import keep  # noqa: E402
import report  # noqa: E402
from setting import commit, machine  # noqa: E402

TARGETS = (0.90, 0.95, 0.99)
# 8-bit codes of floats are raced with the tier that re-ranks; 4-bit ones bring their own.
REFINES = {"i4": "none", "i8": "bf16"}


def options():
    parser = argparse.ArgumentParser(prog="./dev bench limit")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data/glove100"),
                        help="folder with base, queries (.fbin, .u8bin or .i8bin) and truth.ibin")
    parser.add_argument("--metric", choices=("cosine", "ip", "l2"), default="cosine", help="of the data")
    parser.add_argument("--codes", nargs="+", choices=tuple(REFINES), default=tuple(REFINES))
    parser.add_argument("--m", type=int, nargs="+", default=(16, 32))
    parser.add_argument("--targets", type=float, nargs="+", default=TARGETS, help="recall@10")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: count the thread's own processor time, which other programs disturb less")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the measuring is pinned to")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the builds")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    parser.add_argument("--keep", action="store_true", help="use the indexes of the run before, do not build")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"), help="folder of the build")
    parser.add_argument("--work", type=pathlib.Path, help="where the indexes are saved; in the build's folder")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("bench/results"),
                        help="where limit.json goes")
    chosen = parser.parse_args()
    chosen.work = (chosen.work or chosen.build / "bench/limit/indexes") / chosen.data.resolve().name
    if chosen.quick:
        chosen.rounds = 3
    return chosen


def find(folder, stem):
    for suffix in (".fbin", ".u8bin", ".i8bin"):
        if (folder / (stem + suffix)).exists():
            return folder / (stem + suffix)
    sys.exit(f"bench limit: {folder} holds no {stem}.fbin, .u8bin or .i8bin; ./dev data makes data sets")


def run(command, **how):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"bench limit: this failed: {' '.join(map(str, command))}")
    return done.stdout


def index_of(chosen, codes, m):
    path = chosen.work / f"{codes}-m{m}.index"
    if not (chosen.keep and path.exists()):
        base = find(chosen.data, "base")
        refine = REFINES[codes] if base.suffix == ".fbin" else "none"
        run([chosen.build / "shortlist", "build", base, "-o", path, "--metric", chosen.metric, "--codes", codes,
             "--refine", refine, "--m", m, "--ef-build", 200, "--threads", chosen.threads])
    return path


def measure(chosen, index):
    lines = run([chosen.build / "bench/limit/bench_limit", index, find(chosen.data, "queries"),
                 chosen.data / "truth.ibin", chosen.rounds, chosen.clock, *chosen.targets],
                preexec_fn=lambda: os.sched_setaffinity(0, {chosen.cpu}))
    return [json.loads(line) for line in lines.splitlines()]


def main():
    chosen = options()
    chosen.work.mkdir(parents=True, exist_ok=True)
    chosen.results.mkdir(parents=True, exist_ok=True)
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
             "commit": commit(), "machine": machine(), "data": {"name": chosen.data.resolve().name},
             "parameters": {"metric": chosen.metric, "k": 10, "ef_construction": 200, "place": "dram",
                            "rounds": chosen.rounds, "clock": chosen.clock, "cpu": chosen.cpu}}
    paths = [index_of(chosen, codes, m) for codes in chosen.codes for m in chosen.m]
    events = [measure(chosen, path) for path in paths]
    indexes = [report.summarise(of) for of in events]
    about["targets"] = report.facts(indexes)
    keep.record(chosen.results / "limit.json", {**about, "bounds": report.BOUNDS, "indexes": indexes})
    print(report.table(about, indexes))


if __name__ == "__main__":
    main()
