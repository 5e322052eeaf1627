"""Sets of growing size: builds by both builders, memory, files and searches; see docs/internals/bench.md."""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import curves  # noqa: E402
import keep  # noqa: E402
import parts  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
from options import BUILDERS, options  # noqa: E402
from setting import commit, machine  # noqa: E402

FIELDS = ("link_s", "number_s", "save_s", "bytes_total")


def anonymous(pid):
    """Bytes of a process that are of no file, so without the mapped base; 0: it has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return 1024 * next((int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")), 0)


def built(chosen, folder, builder):
    """One build: seconds by both clocks, and the memory that was the process's own at most."""
    words = [chosen.build / "shortlist", "build", folder / "base.fbin", "-o", folder / f"{builder}.sl", "--metric",
             "cosine", "--codes", "i4", "--builder", builder, "--threads", chosen.threads, "--json"]
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
    peak, ended = 0, 0
    while not ended:
        peak = max(peak, anonymous(process.pid))
        time.sleep(0.005)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench scale: this failed: {' '.join(map(str, words))}")
    with process.stdout:
        told = json.loads(process.stdout.read())
    return {"seconds": seconds, "processor_s": used.ru_utime + used.ru_stime, "peak_bytes": peak,
            **{field: told[field] for field in FIELDS}}


def searched(chosen, folder, builder):
    told = json.loads(parts.call([chosen.build / "shortlist", "eval", folder / f"{builder}.sl", folder / "queries.fbin",
                                  folder / "truth.ibin", "-k", parts.K, "--ef", curves.EFS, "--repeat", 3, "--json"]))
    return [{field: point[field] for field in ("ef", "recall", "evaluations", "qps")} for point in told["points"]]


def measure(chosen):
    """Builders take turns; every other round goes the other way about."""
    events = []
    for rows in chosen.sizes:
        folder = parts.make(chosen.build, chosen.data, chosen.work, "synth", rows, chosen.dim)
        for number in range(chosen.rounds):
            for builder in BUILDERS if number % 2 == 0 else BUILDERS[::-1]:
                event = {"event": "build", "rows": rows, "builder": builder, "round": number,
                         **built(chosen, folder, builder)}
                print(f"bench scale: {rows} rows, round {number + 1}: {builder} {event['seconds']:.1f} s",
                      file=sys.stderr)
                events.append(event)
        events += [{"event": "curve", "rows": rows, "builder": builder, "points": searched(chosen, folder, builder)}
                   for builder in BUILDERS]
    return events


def planned(chosen, rows):
    """The library's plan of an index that is far larger than this machine."""
    told = json.loads(parts.call([chosen.build / "shortlist", "info", "--plan", "--dim", chosen.dim, "--n", rows,
                                  "--codes", "i4", "--metric", "cosine", "--json"]))
    return {"rows": rows, **{field: told[field] for field in report.PLANNED}}


def main():
    chosen = options()
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "commit": commit(),
             "machine": machine(), "parameters": {name: getattr(chosen, name) for name in
                                                  ("sizes", "dim", "rounds", "threads")}}
    events = measure(chosen)
    plans = [planned(chosen, rows) for rows in report.FAR]
    record = {**about, "summary": report.summarise(events, plans), "events": events}
    path = chosen.results / ("scale-part.json" if chosen.quick else "scale.json")
    keep.record(path, record, raw=["events"])
    plot.draw(record, path.with_suffix(".svg"))
    print(report.text(record))


if __name__ == "__main__":
    main()
