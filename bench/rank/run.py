"""Measures training beside PyTorch, serving beside ONNX Runtime, and the whole funnel; see docs/internals/bench-rank.md."""

import datetime
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import onnxruntime  # noqa: E402

import keep  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
from beside_torch import Training, run  # noqa: E402
from setting import commit, machine, options_of  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SHAPES = ("criteo", "small")
ITEMS = 200_000  # of item_parts: more than a cache holds


def options():
    parser = options_of("rank", *PARTS)
    parser.add_argument("--rounds", type=int, default=5, help="of each comparison, the two sides taking turns")
    parser.add_argument("--seconds", type=float, default=3, help="of PyTorch's training in a round")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and training on Adult's shape alone")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.seconds = 2, 2
    return chosen


def runtime_library():
    folder = pathlib.Path(onnxruntime.__file__).parent / "capi"
    found = sorted(folder.glob("libonnxruntime.so.*"))
    if not found:
        sys.exit(f"bench rank: no libonnxruntime.so in {folder}; install onnxruntime anew")
    return found[0]


def serving(chosen):
    program, events = chosen.build / "bench" / "rank" / "bench_rank", []
    for shape in SHAPES:
        folder = chosen.build / "bench" / "rank" / f"model-{shape}"
        folder.mkdir(parents=True, exist_ok=True)
        run([program, "model", shape, folder])
        run([sys.executable, HERE / "graph.py", folder])
        for what in ("request", "single"):
            events += run([program, what, shape, folder, runtime_library(), chosen.rounds], {"OMP_NUM_THREADS": "1"})
    return events


def item_parts(chosen):
    program = chosen.build / "bench" / "rank" / "bench_item_parts"
    return [event for shape in (*SHAPES, "first")
            for event in run([program, shape, ITEMS, chosen.rounds], {"OMP_NUM_THREADS": "1"})]


def funnel(chosen):
    program, index = (chosen.build / "bench" / "rank" / name for name in ("bench_funnel", "glove100.index"))
    if not index.exists():
        run([chosen.build / "shortlist", "build", chosen.data / "glove100" / "base.fbin", "-o", index, "--metric",
             "cosine", "--codes", "i8", "--refine", "bf16", "--json"])
    queries = chosen.data / "glove100" / "queries.fbin"
    return [event for shape in SHAPES
            for event in run([program, shape, index, queries, chosen.rounds], {"OMP_NUM_THREADS": "1"})]


def training(chosen):
    sets = [("adult", chosen.data / "adult" / "train.csv"), ("flights", chosen.data / "flights" / "train.csv"),
            ("criteo", chosen.data / "clicks-50000-1" / "train.tsv")]
    return [event for name, rows in (sets[:1] if chosen.quick else sets)
            for event in Training(chosen, name, rows).measure()]


PARTS = {"serve": serving, "items": item_parts, "funnel": funnel, "train": training}


def main():
    chosen = options()
    chosen.results.mkdir(parents=True, exist_ok=True)
    path = chosen.results / ("rank-part.json" if chosen.quick else "rank.json")
    parts = json.loads(path.read_text())["parts"] if chosen.only and path.exists() else {}
    for name in [chosen.only] if chosen.only else PARTS:
        about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                 "commit": commit(), "machine": machine(), "rounds": chosen.rounds}
        parts[name] = {**about, "events": PARTS[name](chosen)}
    summary = report.summarise([event for part in parts.values() for event in part["events"]])
    keep.record(path, {"summary": summary, "parts": parts})
    plot.draw(summary, about, path.with_suffix(".svg"))
    print(report.table(about, summary))
    print(report.markdown(about, summary))


if __name__ == "__main__":
    main()
