"""The published table: layers of every precision by embedding tables of every type, on every set with labels."""

import itertools
import json
import subprocess

import ours
from accuracy import CALIBRATION, MAX_DROP, divide
from speed import NETS

CODES = ("f32", "i8", "i4")
TUNED = "tuned"  # layers: the fastest within the bound, on rows held out of training
# Seeds; the spec, or None: the click log's first columns in the shape of bench speed; the folder of rows.
SETS = {"adult": (5, "adult", "adult"), "movielens": (5, "movielens_like", "movielens100k"),
        "flights": (2, "flights", "flights"), "clicks": (2, None, "clicks-50000-1")}


class Set:
    def __init__(self, chosen, name):
        _, spec, folder = SETS[name]
        ending = "csv" if spec else "tsv"
        self.chosen, self.command = chosen, ours.Command(chosen.build)
        self.folder = chosen.build / "bench" / "precision" / f"table-{name}"
        self.folder.mkdir(parents=True, exist_ok=True)
        train, self.test = (chosen.data / folder / f"{part}.{ending}" for part in ("train", "test"))
        self.calibration, self.tuning, self.fit = divide(train, self.folder)
        self.spec = self.folder / "spec.json"
        made = (json.loads((ours.ROOT / "examples" / "specs" / f"{spec}.json").read_text(encoding="utf-8")) if spec
                else ours.click_spec(*NETS["criteo"]))
        self.spec.write_text(json.dumps(made), encoding="utf-8")

    def model(self, layers, tables, f32):
        """The file of a model. Each layer has the precision and each table the type, whatever they cost. Tuned layers
        are what the search finds."""
        path = self.folder / f"{layers}-{tables}.slr"
        if layers == tables == "f32":
            return f32
        if layers == "f32":
            program = self.chosen.build / "bench" / "tables" / "bench_tables"
            subprocess.run([str(program), "code", str(f32), tables, str(path)], check=True)
            return path
        if layers == TUNED:
            self.command("quantize", f32, "--data", self.calibration, "--eval", self.tuning, "-o", path, "--tables", tables,
                         "--rows", CALIBRATION, "--max-drop", MAX_DROP)
        else:
            self.command.quantize_all(f32, layers, path, self.calibration, "--tables", tables)
        return path

    def measured(self, seed, failed):
        f32 = self.folder / "f32-f32.slr"
        self.command("train", self.spec, self.fit, "-o", f32, "--seed", seed)
        found = []
        for layers, tables in itertools.product(("f32", *self.command.modes(), TUNED), CODES):
            for path in failed.attempt(f"table: {layers}, {tables}", lambda: self.model(layers, tables, f32)).values():
                found.append({"layers": layers, "tables": tables, "bytes": path.stat().st_size,
                              "auc": self.command("evaluate", path, self.test)["auc"]})
        return found


def measure(chosen, failed):
    events = []
    for name, (seeds, _, _) in SETS.items():
        one = Set(chosen, name)
        for seed in range(1, min(seeds, chosen.seeds) + 1):
            events.append({"event": "table", "set": name, "seed": seed, "models": one.measured(seed, failed)})
            print(f"{name}, seed {seed}: AUC {events[-1]['models'][0]['auc']:.5f}", flush=True)
    return events
