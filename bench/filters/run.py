"""Searches with filters, by the share allowed and by where the queries lie; see docs/internals/bench.md."""

import datetime
import hashlib
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "peers"), str(HERE.parent)]

import cells  # noqa: E402
import contenders  # noqa: E402
import keep  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
from options import KINDS, SHARES, options  # noqa: E402
from setting import commit, machine, output_of  # noqa: E402
from sets import Data  # noqa: E402

MOST_ROUND_S = 0.1  # a pass that takes longer has fewer turns
FEW_ROUNDS = 3


def note(text):
    print(f"bench filters: {text}", file=sys.stderr, flush=True)


def our_index(chosen, data):
    """Our index with stored settings, built anew when the library is another one."""
    library = (chosen.build / "libshortlist.so").resolve()
    digest = hashlib.sha256(library.read_bytes()).hexdigest()[:12]
    folder = chosen.work / data.name
    folder.mkdir(parents=True, exist_ok=True)
    kept = sorted(folder.glob(f"{chosen.codes}-*.sl"), key=os.path.getmtime)
    path = folder / f"{chosen.codes}-{digest}.sl"
    if path in kept or (kept and chosen.keep):
        return path if path in kept else kept[-1]
    for old in kept:
        old.unlink()
    note(f"{data.name}: building our index")
    new, command = path.with_suffix(".new"), chosen.build / "shortlist"
    output_of("filters", command, "build", data.base_path, "-o", new, "--metric", data.metric, "--codes", chosen.codes,
              "--threads", chosen.threads)
    output_of("filters", command, "tune", new, data.folder / "queries.fbin", data.folder / "truth.ibin", "-k", cells.K,
              "--recall", contenders.TARGET, "--threads", chosen.threads)
    new.rename(path)
    return path


def turns(chosen, entries, choices):
    """Rounds of one cell in which all entries have a turn, each round beginning with another one."""
    rounds = []
    for number in range(chosen.rounds):
        shift = number % len(entries)
        took = {}
        for entry in entries[shift:] + entries[:shift]:
            choice = choices[entry.name]
            slow = choice["us"] * cells.QUERIES / 1e6 > MOST_ROUND_S
            if not slow or number < FEW_ROUNDS:
                took[entry.name] = entry.process.measure(chosen.seconds, False, choice["setting"])["us"]
        rounds.append(took)
    return rounds


def measure(chosen, data, cell, files, entries):
    """The settings of a cell, and its rounds."""
    for process in dict.fromkeys(entry.process for entry in entries):
        filtered = any(entry.filtered for entry in entries if entry.process is process)
        process.cell(files, filtered)
    choices = {entry.name: entry.cheapest(cell) for entry in entries}
    rounds = turns(chosen, entries, choices)
    row = report.row({"name": cell.name, "share": cell.share, "kind": cell.kind, "allowed": len(cell.allowed),
                      "wanted": cells.filled(cell)}, choices, rounds)
    note(f"{data.name}: " + report.line(row))
    return row


def costs(chosen, index):
    """Times of making filters."""
    lines = output_of("filters", "taskset", "-c", chosen.cpu, chosen.build / "bench/filters/bench_filters", index,
                      3 * chosen.rounds)
    return report.costs([json.loads(line) for line in lines.splitlines()])


def run(chosen, name):
    """One data set, from its indexes to its record."""
    data = Data(chosen.data / name)
    every = cells.make(data, chosen.shares, chosen.kinds)
    folder = chosen.work / data.name
    files = [cells.write(data, cell, (folder / cell.name.replace(" ", "-")).resolve()) for cell in every]
    index = our_index(chosen, data)
    if chosen.prepare:
        contenders.built(chosen, data, data.checksum())
        return None

    def log(of):
        return folder / f"{of.replace(' ', '-')}.log"

    entries = contenders.ours(chosen, data, index, files[0], log)
    entries += contenders.peers(chosen, data, files[0], data.checksum(), log)
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "commit": commit(),
             "machine": machine(), "data": {"name": data.name, "metric": data.metric, "rows": data.count,
                                            "dim": data.dim},
             "parameters": {"k": cells.K, "target": contenders.TARGET, "codes": chosen.codes, "rounds": chosen.rounds,
                            "seconds": chosen.seconds, "clock": chosen.clock, "cpu": chosen.cpu,
                            "queries": cells.QUERIES, "slow_us": contenders.SLOW_US, "peers": contenders.versions()}}
    rows = [measure(chosen, data, cell, of, entries) for cell, of in zip(every, files)]
    for process in dict.fromkeys(entry.process for entry in entries):
        process.stop()
    return {**about, "cells": rows, "costs": costs(chosen, index)}


def main():
    chosen = options()
    for name in chosen.sets:
        record = run(chosen, name)
        if record is None:
            continue
        record["targets"] = report.facts(record)
        whole = (set(chosen.shares), set(chosen.kinds), chosen.peers, chosen.quick, chosen.clock) == \
            (set(SHARES), set(KINDS), True, False, "wall")
        chosen.results.mkdir(parents=True, exist_ok=True)
        path = chosen.results / f"filters-{name}{'' if whole else '-part'}.json"
        keep.record(path, report.reduced(record))
        plot.draw(record, path.with_suffix(".svg"))
        print(report.table(record))


if __name__ == "__main__":
    main()
