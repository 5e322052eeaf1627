"""The example runs, and the types hold."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

import shortlist

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


@pytest.mark.parametrize("line", ['shortlist.Index(4, metric="euclid")', "ix.search(x, k='3')", "ix.delete(1)"])
def test_types_find_mistakes(tmp_path, line):
    done = mypy(tmp_path, USAGE + line + "\n")
    assert done.returncode == 1 and "Found 1 error" in done.stdout, done.stdout


def test_declared_types_are_those_of_the_module():
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "shortlist"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
