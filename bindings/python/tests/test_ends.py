"""A program that ends while a daemon thread is in a call exits with 0, without a word, and leaves sound files."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from clicks import columns, spec

import shortlist

# Runs `calls` over and over on daemon threads, and ends once each has begun, after a while.
PROGRAM = """
import sys, threading, time
import numpy as np
import shortlist
from clicks import columns, spec

def run(*calls, after=0.0):
    begun = [threading.Event() for _ in calls]
    def loop(call, event):
        while True:
            event.set()
            call()
    for call, event in zip(calls, begun):
        threading.Thread(target=loop, args=(call, event), daemon=True).start()
    for event in begun:
        event.wait()
    time.sleep(after)

after = float(sys.argv[1])
x = np.random.default_rng(1).standard_normal((4000, 24)).astype(np.float32)
"""

INDEX = """
index = shortlist.Index(24, "cosine", refine="f32")
index.add(x[:3000])
"""

RANKER = """
data = columns()
ranker = shortlist.Ranker.create(spec(), data)
"""

IN_PLACE = """
shortlist.Index(24, "ip").save("empty.sli", room=20000)
index = shortlist.open("empty.sli", read_only=False)
index.add(x[:500])
index.sync()
at = [500]
def add():
    index.add(x[:50], ids=np.arange(at[0], at[0] + 50))
    at[0] += 50
    index.sync()
    index.delete(np.arange(at[0] - 50, at[0] - 25))
"""

CALLS = {
    "search": INDEX + "run(lambda: index.search(x, 10), lambda: index.search(x[0], 10), after=after)",
    "exact": "run(lambda: shortlist.exact(x, x[:300], 10, metric='ip'), after=after)",
    "function filter": INDEX + "run(lambda: index.search(x[:50], 10, filter=lambda i: i % 2 == 0), after=after)",
    "Filter of a function": INDEX + "run(lambda: len(shortlist.Filter(index, lambda i: i % 2 == 0)), after=after)",
    "iterate": INDEX + "run(lambda: [page for page, _ in zip(index.iterate(x[0], page=10), range(99))], after=after)",
    "range and similar": INDEX
    + "run(lambda: index.range_search(x[:9], 0.1), lambda: index.similar(np.arange(9), 5), after=after)",
    "get and failures": INDEX
    + """
def fails():
    try:
        index.get(10**9)
    except KeyError:
        pass
run(fails, lambda: index.get(np.arange(3000)), lambda: 5 in index, after=after)""",
    "add": "run(lambda: shortlist.Index(24, 'cosine').add(x), after=after)",
    "add with progress": """
run(lambda: shortlist.Index(24, 'cosine').add(x, progress=lambda done, total: None), after=after)""",
    "searches beside an add": INDEX + "run(lambda: index.search(x[:99], 10), lambda: index.add(x[:99], ids=range(10**6, 10**6 + 99)) or index.delete(range(10**6, 10**6 + 99)), after=after)",
    "tune and check": INDEX + "run(lambda: index.tune(x[:300], k=5), after=after)\nrun(index.check, after=after)",
    "save": INDEX + "run(lambda: index.save('saved.sli'), lambda: index.save('saved.sli', layout='records'), after=after)",
    "in place": IN_PLACE + "run(add, lambda: shortlist.open('empty.sli').search(x[:9], 3), after=after)",
    "rebuild, merge, snapshot": INDEX
    + """
index.save("saved.sli", room=9000)
def quietly(call):
    try:
        call()
    except shortlist.Error as error:
        assert error.status == "SL_EBUSY", error
run(lambda: quietly(lambda: shortlist.rebuild("saved.sli")), lambda: shortlist.merge([index]),
    lambda: quietly(lambda: shortlist.snapshot("saved.sli", "copy.sli")), after=after)""",
    "train": RANKER + "run(lambda: shortlist.Ranker.train(spec(), data), after=after)",
    "train with epochs told": RANKER
    + "run(lambda: shortlist.Ranker.train(spec(), data, on_epoch=lambda epoch: None, progress=lambda *a: None), after=after)",
    "predict": RANKER
    + "run(lambda: ranker.predict(data), lambda: ranker.evaluate(data), lambda: ranker.encode(data), after=after)",
    "look-ups": """
vector = {"name": "v", "type": "vector", "dim": 24, "source": "index"}
made = {"label": {"column": "y"}, "features": [vector], "deep": {"hidden": [4]}}
ranker = shortlist.Ranker.create(made, {"v": x[:9], "y": [0, 1, 0] * 3})
run(lambda: ranker.predict({"v": np.arange(4000)}, lookup=lambda feature, i: x[i]), after=after)""",
    "quantize": RANKER + "run(lambda: ranker.quantize(data), lambda: ranker.save('model.slm'), after=after)",
    "items": """
data = columns()
data["id"] = np.arange(400)
items = shortlist.Items(data)
def update():
    items.update(data)
    items.save("items.sli")
run(update, lambda: items.get(np.arange(400), "price"), lambda: shortlist.Items(data), after=after)""",
    "recommend": INDEX
    + """
recommender = shortlist.Recommender(index)
run(lambda: recommender.recommend(x[:99], n=5), lambda: recommender.recommend(x[0], n=5), after=after)""",
}


def ended(folder, program, after=0.0):
    """The status, standard output and standard error of a program that ends that long after its calls began."""
    path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program, str(after)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


# The vectors of the programs' indexes, whose ids are their rows.
ROWS = np.random.default_rng(1).standard_normal((4000, 24)).astype(np.float32)


def answers(index):
    """An index holds the program's vectors, and finds the nearest of them."""
    ids = index.ids().astype(np.int64)
    assert np.unique(ids).size == len(index) == ids.size
    own = ids[ids < 500]
    if own.size == 0:
        return
    stored, asked = index.get(own), ROWS[own]
    cosines = (stored * asked).sum(1) / np.linalg.norm(stored, axis=1) / np.linalg.norm(asked, axis=1)
    assert cosines.min() > 0.99
    nearest = ids[shortlist.exact(index.get(ids), asked[:50], 5, metric=index.metric)[0].astype(np.int64)]
    found = index.search(asked[:50], 5, ef=200)[0]
    assert np.mean([np.isin(one, other).mean() for one, other in zip(found, nearest)]) > 0.9


def sound(folder):
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name == "items.sli":
            items = shortlist.Items.open(path)
            assert items.check().bad_ids == 0 and len(items) == 400
        elif name.endswith(".sli"):
            index = shortlist.open(path)
            report = index.check()
            assert report.sampled_lost == 0, report
            assert name == "empty.sli" or len(index) == 3000
            answers(index)
        elif name.endswith(".slm"):
            assert np.isfinite(shortlist.Ranker.open(path).predict(columns())).all()
        else:
            # A reader that ended within a search leaves its table, as after a crash. The next one takes it over.
            assert name.endswith((".sli.log", ".sli.readers")), f"{name} is left behind"


@pytest.mark.parametrize("call", CALLS)
def test_a_program_ends_within_a_call(call, tmp_path):
    assert ended(tmp_path, CALLS[call], 0.05 * (list(CALLS).index(call) % 2)) == (0, "", "")
    sound(tmp_path)


def test_an_exception_of_the_main_thread_is_told_as_ever(tmp_path):
    status, out, err = ended(tmp_path, INDEX + "run(lambda: index.search(x, 10))\nraise SystemExit(3)")
    assert (status, out, err) == (3, "", "")
    status, out, err = ended(tmp_path, INDEX + "run(lambda: index.search(x, 10))\n1 / 0")
    assert status == 1 and out == "" and err.endswith("ZeroDivisionError: division by zero\n") and "terminate" not in err


def test_what_the_program_does_at_its_end_still_works(tmp_path):
    """Functions of atexit, which may wait for a daemon thread, and destructors that run while Python is finalised."""
    program = INDEX + """
import atexit
stop = threading.Event()
def work():
    while not stop.is_set():
        index.search(x[:99], 10)
worker = threading.Thread(target=work, daemon=True)
worker.start()
def last():
    stop.set()
    worker.join()
    index.save("saved.sli", progress=lambda done, total: None)
    print("saved", len(shortlist.open("saved.sli")))
atexit.register(last)
class Closer:
    def __init__(self, index, search):
        self.index, self.search = index, search
    def __del__(self):
        print(self.search(self.index)[0].shape)
closer = Closer(index, lambda index: index.search(self_query, 3, filter=lambda i: i < 9))
Closer.query = self_query = x[:2]
"""
    status, out, err = ended(tmp_path, program)
    assert (status, err) == (0, "") and out.startswith("saved 3000\n"), (status, out, err)
    assert out in ("saved 3000\n", "saved 3000\n(3,)\n", "saved 3000\n(1, 3)\n", "saved 3000\n(2, 3)\n")
    assert os.listdir(tmp_path) == ["saved.sli"]
    sound(tmp_path)


def test_a_thread_in_a_callback_is_not_waited_for(tmp_path):
    """A thread that ends within a callback stays in its call for ever. If that call changes the index, changes at the
    program's end raise, and it ends."""
    program = INDEX + """
entered = threading.Event()
def hold(*told):
    entered.set()
    time.sleep(100)
threading.Thread(target=lambda: CALL, daemon=True).start()
entered.wait()
class Closer:
    def __init__(self, index):
        self.index, self.write = index, os.write
    def __del__(self):
        self.index.delete([1])
        self.write(1, b"deleted")
sys.modules["last"] = types.ModuleType("last")  # its destructor runs while Python is finalised
sys.modules["last"].closer = Closer(index)
"""
    status, out, err = ended(tmp_path, "import os, types" + program.replace("CALL", "index.search(x[0], 5, filter=hold)"))
    assert (status, out, err) == (0, "deleted", "")
    status, out, err = ended(tmp_path, "import os, types" + program.replace("CALL", "index.add(x[:99], progress=hold)"))
    # The package's exceptions may be gone by then.
    assert status == 0 and out == "" and ("ended with the program" in err or "_errors halted" in err), (status, out, err)


def test_other_modules_of_nanobind_keep_their_warnings(tmp_path):
    """The module has its own domain of nanobind: its settings change no other module."""
    status, out, err = ended(
        tmp_path,
        """
import ctypes
api = ctypes.pythonapi
api.PyInterpreterState_Get.restype = api.PyInterpreterState_GetDict.restype = ctypes.c_void_p
api.PyInterpreterState_GetDict.argtypes = [ctypes.c_void_p]
kept = ctypes.cast(api.PyInterpreterState_GetDict(api.PyInterpreterState_Get()), ctypes.py_object).value
print([name.endswith("_shortlist__") for name in kept if "nb_internals" in str(name)])
""",
    )
    assert (status, out, err) == (0, "[True]\n", "")
