"""Memory nodes, on however many there are; the C tests play machines of several."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DIM

import shortlist

POLICIES = ["interleave", "bind:0", "local"]


@pytest.fixture
def allowed():
    try:
        shortlist.Index(dim=DIM, numa="local").numa()
    except shortlist.Error as error:
        assert error.status == "SL_EUNSUPPORTED"
        pytest.skip(str(error))


@pytest.fixture
def saved(ready, tmp_path):
    path = tmp_path / "items.sl"
    ready.save(path)
    return path


@pytest.mark.parametrize("place", ["map", "dram"])
@pytest.mark.parametrize("policy", POLICIES)
def test_an_opened_index_lies_where_it_was_asked_to(policy, place, allowed, ready, saved, q):
    ix = shortlist.open(saved, place=place, numa=policy)
    pages = ix.numa()
    assert pages["policy"] == policy and pages["bytes_absent"] == 0
    assert sum(pages["bytes_by_node"]) >= ix.stats()["bytes_codes"] + ix.stats()["bytes_links"]
    if policy == "bind:0":
        assert sum(pages["bytes_by_node"]) == pages["bytes_by_node"][0]
    for got, expected in zip(ix.search(q, k=10, threads=2), ready.search(q, k=10)):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_index(policy, allowed, x, q):
    ix = shortlist.Index(dim=DIM, numa=policy)
    ix.add(x, threads=1)
    assert ix.numa()["policy"] == policy
    assert sum(ix.numa()["bytes_by_node"]) >= ix.stats()["bytes_codes"]
    assert ix.search(q, k=10)[0].shape == (len(q), 10)
    ix.close()
    with pytest.raises(ValueError, match="closed"):
        ix.numa()


def test_no_policy(allowed, ready):
    assert ready.numa()["policy"] == "default"


def test_what_is_refused(allowed, saved):
    for make in (lambda numa: shortlist.Index(dim=DIM, numa=numa), lambda numa: shortlist.open(saved, numa=numa)):
        for wrong in ("bind:x", "", "Local"):
            with pytest.raises(ValueError, match="give interleave, bind:N"):
                make(wrong)
        with pytest.raises(TypeError, match="numa must be a str or None, not int"):
            make(0)
        with pytest.raises(ValueError, match="bind:1000: this machine"):
            make("bind:1000")
