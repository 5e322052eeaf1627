"""Measures precisions of a model beside other libraries; see docs/internals/bench-rank.md."""

import datetime
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))

import accuracy  # noqa: E402
import keep  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import sets  # noqa: E402
import speed  # noqa: E402
import training  # noqa: E402
from setting import commit, machine, options_of  # noqa: E402

PARTS = {"speed": speed.measure, "accuracy": accuracy.measure, "tuner": accuracy.tune, "training": training.measure,
         "table": sets.measure}


def options():
    parser = options_of("precision", *PARTS)
    parser.add_argument("--rounds", type=int, default=21, help="of times, all contenders taking turns")
    parser.add_argument("--calibration", type=int, default=4096, help="rows that the peers' tools see")
    parser.add_argument("--training-rounds", type=int, default=5, help="of trainings")
    parser.add_argument("--seconds", type=float, default=3, help="of PyTorch's training in a round")
    parser.add_argument("--compiled", action="store_true", help="also try torch.compile, which takes minutes")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each set of the table, at most")
    parser.add_argument("--quick", action="store_true", help="few rounds, rows and seeds")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.calibration, chosen.training_rounds, chosen.seconds, chosen.seeds = 5, 256, 1, 1, 1
    chosen.build, chosen.data = chosen.build.resolve(), chosen.data.resolve()
    return chosen


def main():
    chosen = options()
    os.environ["OMP_NUM_THREADS"] = "1"
    program = chosen.build / "bench" / "precision" / "bench_precision"
    built = subprocess.run([str(program), "kinds"], capture_output=True, text=True, check=True).stdout.split()
    peers.left_out.update({"onnxruntime", "openvino"} - set(built))
    chosen.results.mkdir(parents=True, exist_ok=True)
    path = chosen.results / ("precision-part.json" if chosen.quick else "precision.json")
    parts = json.loads(path.read_text())["parts"] if chosen.only and path.exists() else {}
    for name in [chosen.only] if chosen.only else PARTS:
        failed = peers.Failures()
        about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                 "commit": commit(), "machine": machine(), "rounds": chosen.rounds, "peers": peers.versions()}
        parts[name] = {**about, "events": PARTS[name](chosen, failed), "failed": failed}
    summary = report.summarise([event for part in parts.values() for event in part["events"]])
    keep.record(path, {"summary": summary, "parts": parts})
    try:
        import plot
        plot.draw(summary, about, path.with_suffix(".svg"))
    except ImportError as error:
        print(f"bench precision: no picture: {error}", file=sys.stderr)
    for name, part in parts.items():
        for what, why in part["failed"].items():
            print(f"{name}: not measured: {what}: {why}")
    print(report.text(about, summary))


if __name__ == "__main__":
    main()
