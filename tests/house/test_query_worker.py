"""The query worker: answers as the library does, from every worker, and ends cleanly. Arguments: the program."""

import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import numpy
import shortlist

DIM, N, K = 24, 3000, 7


def connect(path, process):
    for _ in range(500):
        assert process.poll() is None, "the program ended early"
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(str(path))
            return client
        except (FileNotFoundError, ConnectionRefusedError):
            client.close()
            time.sleep(0.02)
    sys.exit("nobody listens")


def take(client, size):
    data = b""
    while len(data) < size:
        part = client.recv(size - len(data))
        assert part, "the connection ended early"
        data += part
    return data


def ask(client, query, k):
    client.sendall(struct.pack("=I", k) + query.tobytes())
    (count,) = struct.unpack("=I", take(client, 4))
    if count == 2**32 - 1:
        return None
    return numpy.frombuffer(take(client, 8 * count), numpy.uint64), numpy.frombuffer(take(client, 4 * count), numpy.float32)


def children(process):
    path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def check_answers(client, index, queries):
    for query in queries:
        ids, scores = ask(client, query, K)
        wanted_ids, wanted_scores = index.search(query, K, ef=100)
        assert (ids == wanted_ids).all() and (scores == wanted_scores).all()


def check_life(program, path, at):
    index = shortlist.open(path)
    queries = numpy.random.default_rng(2).standard_normal((50, DIM)).astype(numpy.float32)
    process = subprocess.Popen([program, str(path), str(at)])
    try:
        # As many connections at once as there are workers: each is with another of them.
        first = connect(at, process)
        workers = children(process) or [None]
        clients = [first] + [connect(at, process) for _ in workers[1:]]
        for client in clients:
            check_answers(client, index, queries)
        masks = [frozenset(os.sched_getaffinity(worker)) for worker in workers if worker]
        assert all(len(mask) == 1 for mask in masks) and len(set(masks)) == len(masks), masks
        # A request that cannot be answered ends the connection, and the worker takes the next one.
        assert ask(clients[0], queries[0], 0) is None
        assert clients[0].recv(1) == b""
        for client in clients:
            client.close()
        again = connect(at, process)
        broken = queries[:1].copy()
        broken[0, 3] = numpy.nan
        assert ask(again, broken, K) is None
        again.close()
        again = connect(at, process)
        check_answers(again, index, queries)
        few, _ = ask(again, queries[0], 1000)
        assert len(few) == 1000
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
    assert not at.exists() and not any(pathlib.Path(f"/proc/{worker}").exists() for worker in workers if worker)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path, at = pathlib.Path(folder) / "index.sl", pathlib.Path(folder) / "socket"
        index = shortlist.Index(DIM)
        index.add(numpy.random.default_rng(1).standard_normal((N, DIM)).astype(numpy.float32))
        index.save(path)
        check_life(program, path, at)
        # Without an index it says so and leaves no socket.
        failed = subprocess.run([program, folder + "/none.sl", str(at)], capture_output=True, text=True, timeout=20)
        assert failed.returncode == 1 and "none.sl" in failed.stderr and not at.exists(), failed
        assert subprocess.run([program, str(path)], capture_output=True, timeout=20).returncode == 2


main()
