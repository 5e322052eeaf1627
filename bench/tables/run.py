"""Embedding tables in codes beside floats: AUC lost on Adult, bytes, and time of a prediction."""

import datetime
import json
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import keep  # noqa: E402
from setting import commit, fact, machine, options_of, output_of, spread, verdicts  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "bench" / "tables" / "bench_tables"
DIMS = (16, 32)
SHAPES = (("criteo", 500), ("criteo", 1), ("small", 500), ("small", 1), ("large", 500))
CODES = (("i8", "minmax"), ("i8", "mse"), ("i4", "minmax"), ("i4", "mse"))


def options():
    parser = options_of("tables")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each width")
    parser.add_argument("--rounds", type=int, default=21, help="rounds of each shape")
    parser.add_argument("--quick", action="store_true", help="one seed, 5 rounds")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seeds, chosen.rounds = 1, 5
    return chosen


def run(*arguments):
    return json.loads(output_of("tables", PROGRAM, *arguments))


def trained(chosen, dim):
    """The models of every seed, each with tables of every type."""
    spec = json.loads((ROOT / "examples" / "specs" / "adult.json").read_text(encoding="utf-8"))
    for feature in spec["features"]:
        if "dim" in feature:
            feature["dim"] = dim
    adult = chosen.data / "adult"
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(spec, file)
        file.flush()
        runs = []
        for seed in range(1, chosen.seeds + 1):
            found = run("accuracy", file.name, adult / "train.csv", adult / "test.csv", seed)
            runs.append({"seed": seed, "models": found})
            print(f"adult, dim {dim}, seed {seed}:  " + "  ".join(
                f"{model['type']} {model['range']} {model['auc']:.5f}" for model in found), flush=True)
    return runs


def drops(runs, kind, search):
    return [next(m["auc"] for m in one["models"] if m["type"] == "f32")
            - next(m["auc"] for m in one["models"] if (m["type"], m["range"]) == (kind, search)) for one in runs]


def share(runs, kind, which):
    models = {m["type"]: m for m in runs[0]["models"]}
    return models[kind][which] / models["f32"]["row_bytes"]


def summed(runs):
    found = {}
    for kind, search in CODES:
        lost = drops(runs, kind, search)
        found[f"{kind} {search}"] = {"mean": statistics.fmean(lost), "max": max(lost), "min": min(lost),
                                     "bytes": share(runs, kind, "bytes"), "row_bytes": share(runs, kind, "row_bytes")}
    return found


def ratios(timed, what):
    return {kind: spread([one[what][i] / one[what][0] for one in timed["rounds"]])
            for i, kind in ((1, "i8"), (2, "i4"))}


def main():
    chosen = options()
    runs = {str(dim): trained(chosen, dim) for dim in DIMS}
    accuracy = {dim: summed(found) for dim, found in runs.items()}
    timed = [run("speed", name, rows, chosen.rounds) for name, rows in SHAPES]
    facts, speed = [], []
    for dim, found in accuracy.items():
        for kind in ("i8", "i4"):
            facts.append(fact(f"adult, dim {dim}, {kind}: AUC lost", 0.0003, found[f"{kind} mse"]["mean"], False))
        facts.append(fact(f"adult, dim {dim}, i4: rows' bytes of f32's", 0.16, found["i4 mse"]["row_bytes"], False))
        facts.append(fact(f"adult, dim {dim}, i4: all bytes of f32's", 0.16, found["i4 mse"]["bytes"], False))
    for one in timed:
        speed.append({"shape": one["shape"], "rows": one["rows"], "tier": one["tier"],
                      "predict_ns": spread([r["predict"][0] for r in one["rounds"]]),
                      "predict": ratios(one, "predict"), "gather": ratios(one, "gather"),
                      "bytes": [size / one["bytes"][0] for size in one["bytes"]]})
        for kind in ("i8", "i4"):
            facts.append(fact(f"{one['shape']}, {one['rows']} rows, {kind}: time of f32's", 1.05,
                              speed[-1]["predict"][kind]["median"], False))
    print(f"\n{'adult':28}{'AUC lost, mean':>16}{'least':>10}{'most':>10}{'bytes':>8}{'of rows':>9}")
    for dim, found in accuracy.items():
        for name, told in found.items():
            print(f"  dim {dim}, {name:18}{told['mean']:16.5f}{told['min']:10.5f}{told['max']:10.5f}"
                  f"{told['bytes']:8.3f}{told['row_bytes']:9.3f}")
    print(f"\n{'time of f32s':16}{'ns a row':>10}" + "".join(f"{x:>28}" for x in ("predict", "gather alone")))
    for one in speed:
        print(f"  {one['shape']:8}{one['rows']:4} {one['predict_ns']['median']:11.0f}" + "".join(
            f"   {kind} {one[what][kind]['median']:.3f} ({one[what][kind]['min']:.2f}-{one[what][kind]['max']:.2f})"
            for what in ("predict", "gather") for kind in ("i8", "i4")))
    print("\n" + "\n".join(verdicts(facts)))
    chosen.results.mkdir(parents=True, exist_ok=True)
    path = chosen.results / "tables.json"
    keep.record(path, {"about": {"date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine(),
                                 "seeds": chosen.seeds, "rounds": chosen.rounds},
                       "accuracy": accuracy, "speed": speed, "targets": facts})
    print(f"\nwritten to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
    return 0 if all(f["met"] for f in facts) else 1


if __name__ == "__main__":
    sys.exit(main())
