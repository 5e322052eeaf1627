"""Has the tests of durability try as many crashes as asked for and counts; see docs/internals/bench-storage.md."""

import argparse
import datetime
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import keep  # noqa: E402
import report  # noqa: E402
from setting import commit, machine  # noqa: E402


def options():
    parser = argparse.ArgumentParser(prog="./dev bench crash")
    parser.add_argument("--images", type=int, default=100_000, help="crash images of each layout and way of writing")
    parser.add_argument("--kills", type=int, default=200, help="times that a writer at work is killed")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"), help="folder of the build")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("bench/results"),
                        help="where crash.json goes")
    chosen = parser.parse_args()
    if chosen.images < 1 or chosen.kills < 1:
        parser.error("ask for at least 1 image and 1 kill")
    return chosen


def run(chosen, test, count, **environment):
    """Gives the output of a test, its exit status, and its time."""
    start = time.monotonic()
    done = subprocess.run([chosen.build / "tests" / test, str(count)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment})
    return {"output": done.stdout, "status": done.returncode, "seconds": round(time.monotonic() - start, 1)}


def main():
    chosen = options()
    chosen.results.mkdir(parents=True, exist_ok=True)
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
             "commit": commit(), "machine": machine(),
             "parameters": {"images": chosen.images, "kills": chosen.kills}}
    crashes = {layout: run(chosen, "test_crash", chosen.images, TEST_LAYOUT=layout) for layout in report.LAYOUTS}
    summary = report.summarise(chosen.images, crashes,
                               chosen.kills, run(chosen, "test_kill", chosen.kills))
    keep.record(chosen.results / "crash.json", {**about, **summary})
    print(report.table(summary))
    sys.exit(0 if all(fact["met"] for fact in summary["targets"]) else 1)


if __name__ == "__main__":
    main()
