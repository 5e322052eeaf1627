"""The example runs, and the types hold."""

from __future__ import annotations

import ast
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

x: npt.NDArray[np.float32] = np.ones((3, 4), np.float32)
ix = shortlist.Index(dim=4, metric="ip", codes="i8", refine="bf16", dtype=np.float32)
ix.add(x, ids=[1, 2, 3], threads=1, progress=lambda done, total: done > 100)
ids, scores = ix.search(x, k=2)
first: np.uint64 = ids[0, 0]
score: np.float32 = scores[0, 0]
total: int = ix.stats()["bytes_total"]
mean: float = ix.check().mean_degree
with shortlist.open("a.sl", place="dram") as again:
    count: int = len(again)
names: list[str] = shortlist.cpu()["isa_available"]
true_ids, _ = shortlist.exact(x, x[0], k=1, metric="l2")
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


def test_types_ship():
    folder = pathlib.Path(shortlist.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_core.pyi").exists()


def mypy(tmp_path, text):
    pytest.importorskip("mypy")
    (tmp_path / "usage.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "usage.py"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)


def test_a_typed_program_passes_strict_checking(tmp_path):
    done = mypy(tmp_path, USAGE)
    assert done.returncode == 0, done.stdout


def test_types_find_mistakes(tmp_path):
    mistakes = ['shortlist.Index(4, metric="euclid")', "ix.search(x, k='3')", "ix.delete(1)"]
    done = mypy(tmp_path, "\n".join([USAGE, *mistakes]))
    assert done.returncode == 1 and "Found 3 errors" in done.stdout, done.stdout


def test_declared_types_are_those_of_the_module():
    """_core.pyi is written by hand: it must name what the module has, with the same parameters."""
    tree = ast.parse(pathlib.Path(shortlist.__file__).with_name("_core.pyi").read_text())
    declared = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    declared |= functions(tree.body, _core)
    (index,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert functions(index.body, _core.Index) == {name for name in vars(_core.Index) if not name.startswith("_")}
    assert declared | {"Index"} == {name for name in vars(_core) if not name.startswith("_")}


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
