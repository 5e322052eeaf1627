"""Accuracy, bytes and speed of whole models on real tables, and the tuners within a bound."""

import csv
import json
import time

import numpy
import shortlist
import shortlist.onnx

import ours
import peers
from report import auc
from speed import Job

SETS = {"adult": ("adult", "adult"), "movielens": ("movielens_like", "movielens100k")}  # spec, folder of the rows
CALIBRATION, TUNING = 4096, 8000  # rows, held out of those that train
MAX_DROP = 0.0005
ROWS, REQUESTS, CALLS = 500, 40, 4


def divide(path, folder, seed=1):
    """Divides the rows of a CSV by chance: tuning.csv, some of these in calibration.csv, and the rest, fit.csv. A .tsv
    has no heading."""
    with open(path, encoding="utf-8", newline="") as file:
        head = file.readline() if path.suffix == ".csv" else ""
        rows = file.readlines()
    order = numpy.random.default_rng(seed).permutation(len(rows))
    ends = {"calibration": order[:CALIBRATION], "tuning": order[:TUNING], "fit": order[TUNING:]}
    for name, which in ends.items():
        (folder / f"{name}{path.suffix}").write_text(head + "".join(rows[i] for i in which), encoding="utf-8")
    return [folder / f"{name}{path.suffix}" for name in ends]


def labels(spec, path):
    said = spec["label"]
    with open(path, encoding="utf-8", newline="") as file:
        values = [row[said["column"]] for row in csv.DictReader(file)]
    if "at_least" in said:
        return numpy.array([float(value) >= said["at_least"] for value in values])
    return numpy.array([value == said.get("positive", "1") for value in values])


def size(path):
    """Bytes of a model. OpenVINO keeps weights in a file of their own."""
    parts = [path, path.with_suffix(".bin")] if path.suffix == ".xml" else [path]
    return sum(part.stat().st_size for part in parts)


class Table:
    """One table's model of floats, and what ours and the peers' tools make of it."""

    def __init__(self, chosen, name):
        spec, folder = SETS[name]
        self.chosen, self.name, self.command = chosen, name, ours.Command(chosen.build)
        self.folder = chosen.build / "bench" / "precision" / name
        self.folder.mkdir(parents=True, exist_ok=True)
        path, self.test = ours.ROOT / "examples" / "specs" / f"{spec}.json", chosen.data / folder / "test.csv"
        self.spec = json.loads(path.read_text(encoding="utf-8"))
        self.calibration, self.tuning, fit = divide(chosen.data / folder / "train.csv", self.folder)
        self.f32 = self.folder / "f32.slr"
        self.command("train", path, fit, "-o", self.f32, "--threads", 1)
        self.ranker = ours.read_model(self.f32)
        self.truth = labels(self.spec, self.test)

    def quantised(self, name, *options):
        path = self.folder / f"{name}.slr"
        return path, self.command("quantize", self.f32, "--data", self.calibration, "--eval", self.tuning, "-o", path,
                                  "--rows", CALIBRATION, "--max-drop", MAX_DROP, *options)

    def in_mode(self, mode):
        path = self.folder / f"{mode}.slr"
        self.command.quantize_all(self.f32, mode, path, self.calibration, "--eval", self.tuning, "--tables", "f32")
        return path

    def ours(self, failed):
        """By name: every mode, all layers in it; what is fastest within the bound; and that with tables in codes."""
        ways = {mode: lambda mode=mode: self.in_mode(mode) for mode in self.command.modes()}
        ways["auto"] = lambda: self.quantised("auto", "--tables", "f32")[0]
        for kind in ("i8", "i4"):
            ways[f"auto-tables-{kind}"] = lambda kind=kind: self.quantised(f"auto-tables-{kind}", "--tables", kind)[0]
        made = {"shortlist/f32": self.f32}
        for name, way in ways.items():
            made.update(failed.attempt(f"{self.name}: shortlist/{name}", way, f"shortlist/{name}"))
        return made

    def samples(self):
        inputs = shortlist.onnx.inputs(self.ranker, str(self.calibration))
        return [{name: value[i:i + 1] for name, value in inputs.items()} for i in range(self.chosen.calibration)]

    def score(self, name, path, inputs):
        if name.startswith("shortlist"):
            return ours.read_model(path).predict(str(self.test))
        if name.startswith("onnxruntime"):
            return peers.onnxruntime_scores(path, inputs)
        return peers.openvino_scores(path, name, inputs)

    def speed(self, models, inputs, rounds):
        """The whole model from encoded rows on: gathering, layers, the wide part."""
        job = Job(self.folder, ROWS)
        bags = sorted((f for f in self.ranker.features if f.form == "bag"), key=lambda f: f.at)
        names = ["dense", "ids", *(f"bag_{f.name}" for f in bags)]
        for name in names:
            shape = (REQUESTS, ROWS, inputs[name].shape[1])
            job.array(name, numpy.ascontiguousarray(numpy.resize(inputs[name], shape)))
        for name, path in models.items():
            job.contender(name, "model" if name.startswith("shortlist") else peers.kind(name), path, *names)
        found = job.run(self.chosen.build / "bench" / "precision" / "bench_precision", rounds, CALLS)
        return {one["name"]: one["us"] for one in found["contenders"]}

    def measured(self, models):
        inputs = shortlist.onnx.inputs(self.ranker, str(self.test))
        times = self.speed(models, inputs, self.chosen.rounds)
        return [{"name": name, "auc": auc(self.truth, self.score(name, path, inputs)), "bytes": size(path),
                 "us": times[name]} for name, path in models.items()]


def measure(chosen, failed):
    events = []
    for name in SETS:
        table = Table(chosen, name)
        graph, samples = shortlist.onnx.export(table.ranker), table.samples()
        models = {**table.ours(failed), **peers.onnxruntime_models(graph, samples, table.folder, failed),
                  **peers.openvino_models(graph, samples, table.folder, failed)}
        events.append({"event": "accuracy", "set": name, "rows": len(table.truth), "models": table.measured(models)})
        print(f"{name}: {len(models)} models", flush=True)
    return events


def tune(chosen, failed):
    """Our search and NNCF's on the same net, rows and bound."""
    table, events = Table(chosen, "adult"), []
    models, truth = {"shortlist/f32": table.f32}, labels(table.spec, table.tuning)
    took, more = {}, {}
    start = time.perf_counter()
    models["shortlist/auto"], said = table.quantised("auto", "--tables", "f32")
    took["shortlist/auto"] = time.perf_counter() - start
    more["shortlist/auto"] = {key: said[key] for key in ("proved", "trials", "seconds", "drop", "drop_error")}
    try:
        if not peers.there("openvino", failed) or not peers.there("nncf", failed):
            raise ImportError("OpenVINO or NNCF is not there")
        nncf = peers.OpenVino(shortlist.onnx.export(table.ranker), table.samples(), table.folder)
        inputs = shortlist.onnx.inputs(table.ranker, str(table.tuning))
        batches = [{name: value[i:i + ROWS] for name, value in inputs.items()} for i in range(0, len(truth), ROWS)]
        start = time.perf_counter()
        path = nncf.within(batches, lambda scores: auc(truth, scores), MAX_DROP)
        took["openvino/nncf-accuracy-control"] = time.perf_counter() - start
        models["openvino/nncf-accuracy-control"] = path
        models[peers.F32] = nncf.save(nncf.read(), "f32")
    except Exception as error:  # a peer's tool may raise anything
        failed["openvino/nncf-accuracy-control"] = f"{type(error).__name__}: {error}"[:200]
    for one in table.measured(models):
        events.append({"event": "tuner", "set": "adult", "max_drop": MAX_DROP, "rows": len(truth), **one,
                       "seconds": took.get(one["name"]), **more.get(one["name"], {})})
    return events
