"""Builds one variant of one library in a process of its own, and says in built.json what it took."""

import json
import os
import pathlib
import sys
import time

import engines
from engines.base import Skip, saved_bytes
from sets import Data


def main():
    order = json.loads(sys.argv[1])
    folder = pathlib.Path(order["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    data = Data(order["data"], order["metric"])
    library = engines.engine(order["engine"])
    if order["engine"] != "shortlist":
        data.rows  # read, converted and normalised before the clock starts
    started, worked = time.perf_counter(), sum(os.times()[:4])
    try:
        library.build(data, order["settings"], order["threads"], folder)
    except Skip as why:
        pathlib.Path(order["said"]).write_text(json.dumps({"skip": str(why)}))
        return
    took = {"build_s": time.perf_counter() - started, "cpu_s": sum(os.times()[:4]) - worked}
    pathlib.Path(order["said"]).write_text(json.dumps({**took, "bytes": saved_bytes(folder)}))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # some of the libraries fail while being unloaded
