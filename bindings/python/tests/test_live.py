"""Files that are changed in place: room, sync, who sees what and when."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import shortlist


@pytest.fixture
def roomy(ready, tmp_path):
    path = tmp_path / "items.sl"
    ready.save(path, room=len(ready) + 500)
    return path


@pytest.mark.parametrize("place", ["map", "pmem"])
def test_changed_in_place(place, ready, roomy, q, x):
    n = len(ready)
    reader = shortlist.open(roomy)
    writer = shortlist.open(roomy, place=place, read_only=False)
    assert not writer.read_only and writer.stats()["room"] == reader.stats()["room"] == n + 500
    writer.add(x[:100] + 0.01)
    assert len(writer) == n + 100 and len(reader) == n
    writer.delete([5, 7])
    writer.sync()
    assert len(reader) == len(writer) == n + 98
    np.testing.assert_array_equal(reader.search(q, k=10)[0], writer.search(q, k=10)[0])
    assert not np.isin(reader.search(q, k=10)[0], [5, 7]).any()
    with pytest.raises(KeyError):
        reader.get(5)
    writer.add(x[100:110])
    writer.close()
    assert len(reader) == n + 98, "what was not synced is lost"
    reader.check()


def test_one_writes_and_readers_may_not(roomy, x):
    writer = shortlist.open(roomy, read_only=False)
    with pytest.raises(shortlist.Error, match="being written") as caught:
        shortlist.open(roomy, read_only=False)
    assert caught.value.status == "SL_EBUSY"
    reader = shortlist.open(roomy)
    for call in (lambda: reader.add(x[:1]), lambda: reader.delete(1), reader.sync):
        with pytest.raises(shortlist.Error):
            call()
    writer.close()


def test_room_ends(ready, roomy, x):
    writer = shortlist.open(roomy, read_only=False)
    writer.add(x[:500])
    with pytest.raises(ValueError, match="room for"):
        writer.add(x[:1])
    writer.sync()


def test_only_files_with_room(ready, tmp_path):
    path = tmp_path / "small.sl"
    ready.save(path)
    with pytest.raises(shortlist.Error, match="no room"):
        shortlist.open(path, read_only=False)
    with pytest.raises(shortlist.Error, match="in memory"):
        ready.sync()
    with pytest.raises(ValueError, match="room for"):
        ready.save(path, room=3)


def test_another_process_sees_it(roomy, ready):
    writer = shortlist.open(roomy, read_only=False)
    code = "import sys, shortlist; ix = shortlist.open(sys.argv[1])\nfor line in sys.stdin: print(len(ix), flush=True)"
    with subprocess.Popen([sys.executable, "-c", code, str(roomy)], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        for more in (0, 3, 4):
            if more:
                writer.add(ready.get(np.arange(more)))
                writer.sync()
            child.stdin.write("\n")
            child.stdin.flush()
            assert int(child.stdout.readline()) == len(writer)
        child.stdin.close()
