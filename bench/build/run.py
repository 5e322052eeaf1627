"""Whole builds by turns, ours and peers'; see docs/internals/bench.md."""

import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "peers"))

import curves  # noqa: E402
import engines  # noqa: E402
import keep  # noqa: E402
import lineup  # noqa: E402
import parts  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
from options import options  # noqa: E402
from setting import commit, machine  # noqa: E402

STAGES = ("read_s", "link_s", "number_s", "save_s")


def timed(words, threads):
    """The output of a program, its seconds by the wall and by the processor, or its failure."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1:] or ["no message"]
    return {**json.loads(done.stdout.splitlines()[-1]), "wall_s": seconds, "whole_processor_s": processor}, None


class Turns:
    """All contenders over one set."""

    def __init__(self, chosen, name):
        self.chosen, self.name = chosen, name
        rows = chosen.synth if name == "synth" else chosen.rows
        self.folder = parts.make(chosen.build, chosen.data, chosen.work, name, rows)
        self.count = int.from_bytes((self.folder / "base.fbin").open("rb").read(4), "little")
        missing = {package.partition("==")[0] for package in chosen.failed.split(",")}
        self.peers = [peer for peer in lineup.peers(self.count) if chosen.peers and peer[1] not in missing]
        self.failed = {}

    def index(self, builder):
        return self.folder / f"{builder}.sl"

    def ours(self, builder):
        told, failure = timed([self.chosen.build / "shortlist", "build", self.folder / "base.fbin", "-o",
                               self.index(builder), "--metric", "cosine", "--codes", self.chosen.codes, "--builder",
                               builder, "--threads", self.chosen.threads, "--json"], self.chosen.threads)
        if failure:
            sys.exit(f"bench build: our build failed: {failure[0]}")
        return {"seconds": told["wall_s"], "processor_s": told["whole_processor_s"], "bytes": told["bytes_total"],
                **{stage: told[stage] for stage in STAGES}}

    def peer(self, engine, settings):
        script = pathlib.Path(__file__).resolve().parent / "contender.py"
        python = engines.python(engine, self.chosen.build / "peers")
        return timed([python, "-B", script, self.folder, engine, json.dumps(settings), self.chosen.threads],
                     self.chosen.threads)

    def round(self, number):
        """Every other round goes the other way about."""
        turns = [(lineup.our_name(builder), builder, None) for builder in lineup.OURS]
        turns += [(name, engine, settings) for name, _, engine, settings in self.peers]
        for name, engine, settings in turns if number % 2 == 0 else turns[::-1]:
            if name in self.failed:
                continue
            told, failure = (self.ours(engine), None) if settings is None else self.peer(engine, settings)
            if failure:
                self.failed[name] = failure[0]
                continue
            event = {"event": "build", "set": self.name, "name": name, "round": number, "rows": self.count,
                     **{field: told[field] for field in ("seconds", "processor_s", "bytes", *STAGES) if field in told}}
            print(f"bench build: {self.name}, round {number + 1}: {name} {event['seconds']:.1f} s", file=sys.stderr)
            yield event

    def evaluations(self):
        for builder in lineup.OURS:
            told = json.loads(parts.call([self.chosen.build / "shortlist", "eval", self.index(builder),
                                          self.folder / "queries.fbin", self.folder / "truth.ibin", "-k", parts.K,
                                          "--ef", curves.EFS, "--repeat", 1, "--threads", self.chosen.threads, "--json"]))
            yield {"event": "curve", "set": self.name, "name": lineup.our_name(builder),
                   "points": [{field: point[field] for field in ("ef", "recall", "evaluations")}
                              for point in told["points"]]}


def main():
    chosen = options()
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "commit": commit(),
             "machine": machine(), "parameters": {name: getattr(chosen, name) for name in
                                                  ("sets", "rows", "synth", "rounds", "threads", "codes")}}
    turns = [Turns(chosen, name) for name in chosen.sets]
    events = []
    for number in range(chosen.rounds):
        for turn in turns:
            events += turn.round(number)
    for turn in turns:
        events += turn.evaluations()
    failed = {package: "could not be installed" for package in chosen.failed.split(",") if package}
    for turn in turns:
        failed.update({f"{turn.name}: {name}": why for name, why in turn.failed.items()})
    record = {**about, "failed": failed, "summary": report.summarise(events), "events": events}
    path = chosen.results / ("build-part.json" if chosen.quick else "build.json")
    keep.record(path, record, raw=["events"])
    plot.draw(record, path.with_suffix(".svg"))
    print(report.table(record))


if __name__ == "__main__":
    main()
