"""Measures training in bf16 and fp16 beside f32; see docs/internals/bench-rank.md."""

import datetime
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import keep  # noqa: E402
import report  # noqa: E402
from setting import commit, machine, options_of, output_of  # noqa: E402

PRECISIONS = ("f32", "bf16", "fp16")


def options():
    parser = options_of("mixed", "steps", "seeds")
    parser.add_argument("--rounds", type=int, default=200, help="of steps; the precisions take turns")
    parser.add_argument("--seeds", type=int, default=10, help="of trainings on Adult")
    parser.add_argument("--quick", action="store_true", help="20 rounds and 2 seeds")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.seeds = 20, 2
    return chosen


def steps(chosen, work):
    """Criteo's shape, 845-1024-512-256-1, in mini-batches of 512, on one thread."""
    spec = work / "criteo.json"
    shape = json.loads((HERE.parent / "rank" / "criteo.json").read_text())
    spec.write_text(json.dumps({**shape, "train": {"epochs": 1, "batch": 512, "validation": 0}}))
    printed = output_of("mixed", chosen.build / "bench" / "mixed" / "bench_mixed", spec,
                        chosen.data / "clicks-50000-1" / "train.tsv", chosen.rounds, *PRECISIONS)
    return [json.loads(line) for line in printed.splitlines()]


def seeds(chosen, work):
    events, model = [], work / "adult.slr"
    program, data = chosen.build / "shortlist", chosen.data / "adult"
    for seed in range(1, chosen.seeds + 1):
        for precision in PRECISIONS:
            trained = json.loads(output_of("mixed", program, "train", HERE.parents[1] / "examples" / "specs" / "adult.json",
                                           data / "train.csv", "-o", model, "--seed", seed, "--precision", precision,
                                           "--threads", 1, "--json"))
            judged = json.loads(output_of("mixed", program, "evaluate", model, data / "test.csv", "--json"))
            events.append({"event": "seed", "seed": seed, "precision": precision, "emulated": trained["emulated"],
                           "auc": judged["auc"], "logloss": judged["logloss"], "epochs": trained["epochs"],
                           "skipped_steps": trained["skipped_steps"]})
            print(json.dumps(events[-1]), file=sys.stderr)
    return events


PARTS = {"steps": steps, "seeds": seeds}


def main():
    chosen = options()
    work = chosen.build / "bench" / "mixed"
    work.mkdir(parents=True, exist_ok=True)
    chosen.results.mkdir(parents=True, exist_ok=True)
    path = chosen.results / ("mixed-part.json" if chosen.quick else "mixed.json")
    parts = json.loads(path.read_text())["parts"] if chosen.only and path.exists() else {}
    for name in [chosen.only] if chosen.only else PARTS:
        about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                 "commit": commit(), "machine": machine()}
        parts[name] = {**about, "events": PARTS[name](chosen, work)}
    summary = report.summarise([event for part in parts.values() for event in part["events"]])
    keep.record(path, {"summary": summary, "parts": parts})
    print(report.table(about, summary))


if __name__ == "__main__":
    main()
