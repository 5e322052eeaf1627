"""Questions to an index besides searches for the k nearest."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DIM

import shortlist


@pytest.mark.parametrize("step", [1, 2**40])
def test_ids_are_listed_and_told(x, step):
    ix = shortlist.Index(dim=DIM)
    assert ix.ids().dtype == np.uint64 and ix.ids().shape == (0,) and 0 not in ix
    ids = np.arange(len(x), dtype=np.uint64) * np.uint64(step)
    ix.add(x, ids)
    assert sorted(ix.ids()) == list(ids)
    ix.delete(ids[[3, 5]])
    assert sorted(ix.ids()) == list(np.delete(ids, [3, 5]))
    assert ids[4] in ix and int(ids[4]) in ix and 4 * step in ix
    assert ids[3] not in ix and len(x) * step not in ix
    for no_id in (-1, 2**64 - 1, 2**64, 10**30):
        assert no_id not in ix
    for no_number in ("4", 4.0, None):
        with pytest.raises(TypeError):
            no_number in ix  # noqa: B015
    ix.close()
    with pytest.raises(ValueError, match="closed"):
        0 in ix  # noqa: B015
    with pytest.raises(ValueError, match="closed"):
        ix.ids()


def test_ids_of_a_file_that_another_handle_writes(x, tmp_path):
    path = tmp_path / "live.sl"
    ix = shortlist.Index(dim=DIM)
    ix.add(x[:1000])
    ix.save(path, room=2000)
    with shortlist.open(path, read_only=False) as writer, shortlist.open(path) as reader:
        writer.add(x[1000:1500])
        assert 1200 in writer and 1200 not in reader and len(reader.ids()) == 1000
        writer.delete([7])
        writer.sync()
        assert 1200 in reader and 7 not in reader
        assert sorted(reader.ids()) == [i for i in range(1500) if i != 7]
