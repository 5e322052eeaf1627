"""Measures many ranks: runs the parts and keeps one record; see docs/internals/bench-cluster.md.

A part is a module of this folder with four functions:
  measure(chosen, work)        runs it; returns a list of events
  summarise(events)            returns what the record keeps; "targets" is a list of setting.fact
  table(summary)               returns text to print
  draw(summary, about, path)   writes a picture
A module without `measure` is a program of its own, with its own record.
"""

import datetime
import importlib
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import keep  # noqa: E402
from setting import commit, machine, options_of, verdicts  # noqa: E402

PARTS = [name for name in ("simulate", "shared", "train", "scaling", "split") if (HERE / f"{name}.py").exists()]


def options():
    parser = options_of("cluster", *PARTS)
    parser.add_argument("--rounds", type=int, default=7, help="of each comparison; the contenders take turns")
    parser.add_argument("--seconds", type=float, default=4, help="of PyTorch's training in a round")
    parser.add_argument("--seeds", type=int, default=5, help="of trainings on Adult")
    parser.add_argument("--quick", action="store_true", help="2 rounds of the smaller settings, and 2 seeds")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.seconds, chosen.seeds = 2, 1.5, 2
    return chosen


# Options that make a program quick.
QUICK = {"simulate": ["--most", "64"], "shared": ["--ranks", "2", "--turns", "1", "--rounds", "5"]}
RECORDS = {"simulate": "simulated"}


def run_program(chosen, name):
    """Runs a part that is a program of its own."""
    record = chosen.results / f"cluster-{RECORDS.get(name, name)}{'-part' if chosen.quick else ''}.json"
    done = subprocess.run([sys.executable, HERE / f"{name}.py", "--output", record,
                           *(QUICK.get(name, []) if chosen.quick else [])], check=False)
    if done.returncode:
        sys.exit(f"bench cluster: the part {name} failed")


def main():
    chosen = options()
    work = chosen.build / "bench" / "cluster"
    work.mkdir(parents=True, exist_ok=True)
    chosen.results.mkdir(parents=True, exist_ok=True)
    path = chosen.results / ("cluster-part.json" if chosen.quick else "cluster.json")
    parts = json.loads(path.read_text()) if chosen.only and path.exists() else {}
    for name in [chosen.only] if chosen.only else PARTS:
        part = importlib.import_module(name)
        if not hasattr(part, "measure"):
            run_program(chosen, name)
            continue
        about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                 "commit": commit(), "machine": machine(), "rounds": chosen.rounds}
        events = part.measure(chosen, work)
        (work / f"{name}-events.json").write_text(json.dumps(events))
        summary = part.summarise(events)
        parts[name] = {**about, **summary}
        keep.record(path, parts)
        part.draw(summary, about, path.with_name(f"{path.stem}-{name}.svg"))
        print(part.table(summary))
        print("\n".join(verdicts(summary["targets"])) + "\n")


if __name__ == "__main__":
    main()
