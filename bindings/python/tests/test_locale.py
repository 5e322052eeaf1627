"""Specs, models and pickles hold the same numbers under every locale."""

import os
import pathlib
import subprocess
import sys

import pytest

MAKE_LOCALES = pathlib.Path(__file__).resolve().parents[3] / "tests" / "support" / "make_locales.sh"
# Prints what the numbers of a model came to.
SCRIPT = """
import hashlib, locale, pathlib, pickle, sys
import numpy as np
import shortlist

if sys.argv[1] != "C":
    locale.setlocale(locale.LC_NUMERIC, sys.argv[1])
    assert locale.localeconv()["decimal_point"] != "."
x = np.linspace(-1.5, 1.5, 200)
rows = {"x": x, "click": (x > 0.25).astype(np.float32)}
spec = {"label": {"column": "click"}, "wide": {"rate": 0.05},
        "features": [{"name": "x", "type": "numeric", "missing": -0.125},
                     {"name": "b", "type": "bucket", "column": "x", "boundaries": [-0.75, 0.1, 1.5]}]}
ranker = shortlist.Ranker.create(spec, rows)
ranker.save(sys.argv[2])
copies = [shortlist.Ranker.open(sys.argv[2]), pickle.loads(pickle.dumps(ranker))]
assert all((copy.predict(rows) == ranker.predict(rows)).all() and copy.spec == ranker.spec for copy in copies)
print(hashlib.sha256(pathlib.Path(sys.argv[2]).read_bytes()).hexdigest(), ranker.spec)
"""


def told(name: str, folder: pathlib.Path) -> str:
    done = subprocess.run([sys.executable, "-c", SCRIPT, name, str(folder / "m.slr")], text=True, capture_output=True,
                          env=os.environ | {"LOCPATH": str(folder)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_locales_change_nothing(tmp_path):
    made = subprocess.run([str(MAKE_LOCALES), str(tmp_path)], text=True, capture_output=True)
    if made.returncode == 77:
        pytest.skip(made.stderr)
    assert made.returncode == 0, made.stderr
    wanted = told("C", tmp_path)
    assert "0.05" in wanted
    for name in ("comma", "arabic", "wide"):
        assert told(name, tmp_path) == wanted
