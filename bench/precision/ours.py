"""Our side: training and quantising by the command, and a model's dense layers as arrays."""

import json
import pathlib
import re
import subprocess
import sys

import numpy
import shortlist

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Command:
    """The command `shortlist`. Each call gives what it prints as JSON."""

    def __init__(self, build):
        self.program = build / "shortlist"

    def text(self, *words):
        done = subprocess.run([str(self.program), *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"shortlist {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def __call__(self, *words):
        return json.loads(self.text(*words, "--json"))

    def quantize_all(self, f32, mode, path, calibration, *options):
        """Puts all layers into the mode's precision, whatever that costs."""
        return self("quantize", f32, "--data", calibration, "-o", path, "--mode", mode, "--strategy", "basic", "--trials", 1,
                    "--max-drop", 1, *options)

    def modes(self):
        """The precisions of layers that quantize offers, such as static and dynamic: its --mode without auto. qat is no
        precision: it makes another net, which bench qat measures."""
        return [mode for mode in self.words("quantize", "--mode") if mode != "qat"]

    def precisions(self):
        """The precisions that train offers, such as f32 and bf16: its --precision without auto."""
        return self.words("train", "--precision")

    def words(self, command, option):
        offered = re.search(option + r" ([a-z0-9]+(?:\|[a-z0-9]+)+)", self.text(command, "--help"))
        return [word for word in offered.group(1).split("|") if word != "auto"]


def deep_inputs(ranker, rows):
    """The dense layers' inputs of encoded rows, (rows, inputs), in the order of the net: the user's first."""
    tensors, parts = ranker.tensors(), []
    for feature in sorted((f for f in ranker.features if f.deep_at is not None), key=lambda f: f.deep_at):
        if feature.form == "dense":
            parts.append(rows.dense[:, feature.at:feature.at + feature.width])
        elif feature.form == "id":
            parts.append(tensors[feature.tensor][rows.ids[:, feature.at]])
        else:
            sys.exit(f"bench precision: {feature.name} is a bag, which has no fixed number of ids")
    return numpy.ascontiguousarray(numpy.concatenate(parts, 1), numpy.float32)


def dense_layers(ranker):
    """[(weight (in, out), bias (out))] of the dense layers."""
    tensors = ranker.tensors()
    return [(tensors[f"dense.{i}.weight"], tensors[f"dense.{i}.bias"][0]) for i in range(ranker.info.layers)]


def user_inputs(ranker):
    """How many of the net's inputs are a user's. They come first."""
    return min(f.deep_at for f in ranker.features if f.deep_at is not None and f.side != "user")


def click_spec(numbers, categories, dim, hidden):
    """A spec of the click log's first columns. The first half of the numbers and of the categories is a user's."""
    whole = json.loads((ROOT / "bench" / "rank" / "criteo.json").read_text(encoding="utf-8"))
    features = []
    for letter, count in (("I", numbers), ("C", categories)):
        for i in range(count):
            (feature,) = (f for f in whole["features"] if f["name"] == f"{letter}{i + 1}")
            more = {"dim": dim} if letter == "C" else {}
            features.append({**feature, **more, "side": "user" if i < count // 2 else "item"})
    return {**whole, "features": features, "wide": {"features": [f["name"] for f in features if "dim" in f]},
            "deep": {**whole["deep"], "hidden": hidden}, "train": {"epochs": 1, "batch": 512, "validation": 0}}


def read_model(path):
    return shortlist.Ranker.open(str(path))


def first_lines(path, count, to):
    """Writes the first lines of a file without a heading to another. Returns its path."""
    with open(path, encoding="utf-8") as source, open(to, "w", encoding="utf-8") as out:
        for _, line in zip(range(count), source):
            out.write(line)
    return to
