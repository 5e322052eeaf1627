"""Speed: dense nets of two shapes, 500 rows and one, ours and the peers' by turns in one program on one core."""

import json
import subprocess

import numpy

import ours
import peers
import report

NETS = {"criteo": (13, 26, 32, [1024, 512, 256]), "small": (5, 8, 16, [128, 64, 32])}
CALIBRATION = 4096  # rows, the same for all
SETS = {500: 40, 1: 400}  # of inputs: more than caches hold, where a set is a request
CALLS = {500: 1, 1: 100}
PARTS = ("parts", "parts-bf16", "parts-i8")  # types of the items' parts of the first layer


class Job:
    """A file that tells bench_precision what to run, and the program's answer."""

    def __init__(self, folder, rows):
        self.folder, self.lines = folder, [f"rows {rows}"]
        self.lines += [f"library {name} {path}" for name, path in peers.libraries().items()]

    def array(self, name, values, once=False):
        """values: (sets, rows, columns), or (sets, 1, columns) where a set has the row once."""
        path = self.folder / f"{name}.bin"
        values.tofile(path)
        kind = "f32" if values.dtype == numpy.float32 else "i64"
        self.lines.append(f"array {name} {kind} {values.shape[1]} {values.shape[2]} {path}")

    def contender(self, name, kind, model, *arrays):
        self.lines.append(f"contender {name} {kind} {model} {' '.join(arrays)}")

    def run(self, program, rounds, calls):
        path = self.folder / "job.txt"
        path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        done = subprocess.run([str(program), str(path), str(rounds), str(calls)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{program.name} {path}: {done.stderr.strip()}")
        found = json.loads(done.stdout)
        wrong = report.strangers(found)
        if wrong:
            raise RuntimeError(f"{path}: outputs too far from f32's: {', '.join(wrong)}")
        return found


class Net:
    """A trained net, its INT8 models, and the peers' models of it."""

    def __init__(self, chosen, name, failed):
        self.chosen, self.name = chosen, name
        self.folder = chosen.build / "bench" / "precision" / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.command = ours.Command(chosen.build)
        log = chosen.data / "clicks-50000-1"
        spec, self.f32 = self.folder / "spec.json", self.folder / "f32.slr"
        spec.write_text(json.dumps(ours.click_spec(*NETS[name])), encoding="utf-8")
        self.command("train", spec, log / "train.tsv", "-o", self.f32, "--threads", 1)
        self.calibration = ours.first_lines(log / "train.tsv", CALIBRATION, self.folder / "calibration.tsv")
        self.models = {"f32": self.f32}
        for mode in self.command.modes():
            self.models.update(failed.attempt(f"shortlist/{mode}", lambda m=mode: self.quantised(m, log), mode))
        ranker = ours.read_model(self.f32)
        self.user = ours.user_inputs(ranker)
        self.rows = ours.deep_inputs(ranker, ranker.encode(str(log / "train.tsv")))
        self.first = ours.dense_layers(ranker)[0]
        self.graphs = {form: self.peers_models(ranker, form, failed) for form in peers.FORMS}

    def quantised(self, mode, log):
        """All layers in the mode's precision, whatever it costs in accuracy."""
        path = self.folder / f"{mode}.slr"
        self.command.quantize_all(self.f32, mode, path, self.calibration, "--eval", log / "test.tsv",
                                  "--tables", "f32")
        return path

    def inputs(self, rows):
        """The arrays of every form for requests (sets, rows, inputs), whose first row has the user's inputs."""
        user, item = rows[:, :1, :self.user], rows[:, :, self.user:]
        weight, bias = self.first
        return {"x": numpy.concatenate([numpy.broadcast_to(user, (*rows.shape[:2], self.user)), item], 2), "user": user,
                "item": item, "user_part": user @ weight[:self.user] + bias, "item_part": item @ weight[self.user:]}

    def peers_models(self, ranker, form, failed):
        folder = self.folder / form
        folder.mkdir(exist_ok=True)
        graph = peers.net_graph(ours.dense_layers(ranker), form, self.user)
        arrays = self.inputs(self.rows[:self.chosen.calibration, None])
        samples = [{name: arrays[name][i] for name in peers.FORMS[form]} for i in range(self.chosen.calibration)]
        return {**peers.onnxruntime_models(graph, samples, folder, failed),
                **peers.openvino_models(graph, samples, folder, failed)}

    def measure(self, rows, rounds):
        """One user's inputs beside the items' of each request, in every form that a contender takes them."""
        sets, job, forms = SETS[rows], Job(self.folder, rows), peers.FORMS if rows > 1 else ("whole",)
        for name, values in self.inputs(numpy.resize(self.rows, (sets, rows, self.rows.shape[1]))).items():
            job.array(name, numpy.ascontiguousarray(values))
        for precision, path in self.models.items():
            job.contender(f"shortlist/{precision}/whole", "net", path, "x")
            for part in PARTS if rows > 1 else ():
                job.contender(f"shortlist/{precision}/{part}", part, path, "user", "item")
        for form in forms:
            for name, path in self.graphs[form].items():
                job.contender(f"{name}/{form}", peers.kind(name), path, *peers.FORMS[form])
        found = job.run(self.chosen.build / "bench" / "precision" / "bench_precision", rounds, CALLS[rows])
        return {"event": "speed", "net": self.name, **found}


def measure(chosen, failed):
    events = []
    for name in NETS:
        net = Net(chosen, name, failed)
        for rows in SETS:
            events.append(net.measure(rows, chosen.rounds))
            print(f"{name}, {rows} rows: {len(events[-1]['contenders'])} contenders", flush=True)
    return events
