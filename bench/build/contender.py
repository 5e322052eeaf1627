"""One build by a peer, in a process of its own: rows are in memory before the clock starts; the saved index ends it."""

import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))

import engines  # noqa: E402
from sets import Data  # noqa: E402


def main():
    folder, engine, settings, threads = sys.argv[1:]
    peer = engines.engine(engine)
    data = Data(folder, "cosine")
    len(data.rows)
    with tempfile.TemporaryDirectory(dir=folder) as output:
        wall, processor = time.perf_counter(), time.process_time()
        peer.build(data, json.loads(settings), int(threads), pathlib.Path(output))
        seconds = {"seconds": time.perf_counter() - wall, "processor_s": time.process_time() - processor}
        size = sum(path.stat().st_size for path in pathlib.Path(output).rglob("*") if path.is_file())
    print(json.dumps({**seconds, "bytes": size}))


if __name__ == "__main__":
    main()
