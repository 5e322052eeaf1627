"""The example runs, and the types hold."""

from __future__ import annotations

import ast
import importlib.metadata
import pathlib
import re
import subprocess
import sys

import pytest

import shortlist
from shortlist import _core

ROOT = pathlib.Path(__file__).parents[3]

USAGE = """
import numpy as np
import numpy.typing as npt
import shortlist
import shortlist.onnx

x: npt.NDArray[np.float32] = np.ones((3, 4), np.float32)
ix = shortlist.Index(dim=4, metric="ip", codes="i8", refine="bf16", dtype=np.float32)
ix.add(x, ids=[1, 2, 3], threads=1, progress=lambda done, total: done > 100)
ids, scores = ix.search(x, k=2)
first: np.uint64 = ids[0, 0]
score: np.float32 = scores[0, 0]
total: int = ix.stats()["bytes_total"]
ix.delete([3, 5])
mean: float = ix.check().mean_degree
pages: int = ix.check().pages_checked if not ix.check().unverified else ix.check().bad_pages
with shortlist.open("a.sl", place="dram", exclusive=True, wait=0.5) as again:
    count: int = len(again)
names: list[str] = shortlist.cpu()["isa_available"]
true_ids, _ = shortlist.exact(x, x[0], k=1, metric="l2")
allowed, _ = ix.search(x, filter=np.array([True, False]))
told: list[float] = []
rk = shortlist.Ranker.train({"label": {"column": "y"}}, {"a": x[0], "y": [0, 1]}, epochs=1, lookup=ix,
                            on_epoch=lambda epoch: told.append(epoch.train_loss))
auc: float = rk.evaluate("test.csv", group="user").auc
probabilities: npt.NDArray[np.float32] = rk.predict({"a": [1.0]}, threads=2)
loss: float = rk.report.valid_loss if rk.report else 0.0
at: int | None = rk.features[0].deep_at
weights: npt.NDArray[np.float32] = rk.with_tensors({"bias": [1.0]}).tensors()["bias"]
encoded_ids: npt.NDArray[np.uint32] = rk.encode({"a": [1.0]}).ids
items = shortlist.Items({"id": [1], "a": [2.0]})
titles: list[str] = items.get([1], "a")["a"]
serving = shortlist.Recommender(ix, rk, items, item_part="codes", group="a")
serving.swap(items=items)
top = serving.recommend(x, {"a": [1.0]}, n=3, exclude=[[1], [2], [3]], accept=[1, 2])
best: np.float32 = shortlist.recommend(ix, rk, items, x, n=2).scores[0, 0]
version: int = top.version
again_rk: shortlist.Ranker = shortlist.onnx.load(shortlist.onnx.export(rk, "m.onnx"))
try:
    again.close()
except shortlist.Error as error:
    status: str = error.status
"""


def test_the_quickstart():
    example = ROOT / "examples" / "quickstart.py"
    if not example.exists():
        pytest.skip("the tests run away from the project's tree")
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.search(r"recall@10 over 200 queries: ([0-9.]+)", done.stdout)
    assert found and 0.95 <= float(found[1]) <= 1


def test_the_first_program(tmp_path):
    """The README of the project has one, which runs as it is written."""
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("the tests run away from the project's tree")
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert len(blocks) == 1
    done = subprocess.run([sys.executable, "-c", blocks[0]], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[0 1 2] ")


def test_the_readme(tmp_path):
    """The page's examples run, one after the other."""
    readme = ROOT / "bindings" / "python" / "README.md"
    if not readme.exists():
        pytest.skip("the tests run away from the project's tree")
    pytest.importorskip("onnx")
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert len(blocks) == 3
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "clicks.slr").exists() and (tmp_path / "clicks.onnx").exists()


def test_the_licence_ships():
    files = [file for file in importlib.metadata.files("shortlist") or [] if file.name == "LICENSE"]
    assert files and files[0].read_text() == (ROOT / "LICENSE").read_text()


def test_types_ship():
    folder = pathlib.Path(shortlist.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_core.pyi").exists()


def mypy(tmp_path, text, *what):
    pytest.importorskip("mypy")
    (tmp_path / "usage.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *(what or ["usage.py"])]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)


def test_a_typed_program_passes_strict_checking(tmp_path):
    done = mypy(tmp_path, USAGE)
    assert done.returncode == 0, done.stdout


def test_the_package_passes_strict_checking(tmp_path):
    done = mypy(tmp_path, "", "-p", "shortlist")
    assert done.returncode == 0, done.stdout


def test_types_find_mistakes(tmp_path):
    mistakes = [
        'shortlist.Index(4, metric="euclid")',
        "ix.search(x, k='3')",
        "ix.remove(1)",
        'shortlist.Recommender(ix, item_part="all")',
        "rk.predict([1.0], threads='all')",
        "rk.report.rows",
    ]
    done = mypy(tmp_path, "\n".join([USAGE, *mistakes]))
    assert done.returncode == 1 and "Found 6 errors" in done.stdout, done.stdout


def test_declared_types_are_those_of_the_module():
    """_core.pyi is written by hand: it must name what the module has, with the same parameters."""
    tree = ast.parse(pathlib.Path(shortlist.__file__).with_name("_core.pyi").read_text())
    declared = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    declared |= functions(tree.body, _core)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            declared.add(node.name)
            made = getattr(_core, node.name)
            own = {name for name in vars(made) if not name.startswith("_")}
            assert functions(node.body, made) - {"__init__"} == own
    assert declared == {name for name in vars(_core) if not name.startswith("_")}


def functions(body, owner):
    found = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    for name, node in found.items():
        if any(getattr(decorator, "id", "") == "property" for decorator in node.decorator_list):
            continue
        signature = getattr(owner, name).__nb_signature__[0][0]
        made = re.sub(r"\\\d+", "object", signature) + ": ..."
        (made,) = ast.parse(made).body
        assert [a.arg for a in made.args.args] == [a.arg for a in node.args.args], name
    return set(found)
