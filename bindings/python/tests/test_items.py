"""The item table: made, saved, mapped, updated, read."""

from __future__ import annotations

import os
import pickle
import struct

import numpy as np
import pytest
from clicks import columns, write_csv
from conftest import moves, run_together

import shortlist


@pytest.fixture(scope="module")
def data():
    rows = columns(200)
    return {"id": np.arange(200) * 3, **{name: rows[name] for name in ("price", "shop", "tags")}}


@pytest.fixture
def items(data):
    return shortlist.Items(data)


def test_values_by_id(items, data):
    assert len(items) == 200
    found = items.get([6, 0, 597], ["shop", "price", "tags"])
    for place, row in enumerate((2, 0, 199)):
        assert found["shop"][place] == str(data["shop"][row])
        assert float(found["price"][place]) == data["price"][row]
        assert found["tags"][place] == "|".join(data["tags"][row])
    assert items.get(6, "shop") == {"shop": [str(data["shop"][2])]}
    assert items.get([], "shop") == {"shop": []}


def test_what_is_not_there(items):
    with pytest.raises(KeyError, match="7"):
        items.get([0, 7], "shop")
    with pytest.raises(KeyError, match="colour"):
        items.get([0], "colour")


def test_saved_and_mapped(items, tmp_path):
    items.save(tmp_path / "items.sli")
    again = shortlist.Items.open(tmp_path / "items.sli")
    ids = np.arange(0, 600, 3)
    names = ["shop", "price", "tags"]
    assert again.get(ids, names) == items.get(ids, names) and len(again) == 200
    with pytest.raises(FileNotFoundError):
        shortlist.Items.open(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"nothing" * 1000)
    with pytest.raises(shortlist.Error):
        shortlist.Items.open(tmp_path / "bad")
    with pytest.raises(TypeError):
        pickle.dumps(items)


def flip(path, section, at=0):
    """Changes one bit of a file's section, by its place in the section table."""
    data = bytearray(path.read_bytes())
    (offset,) = struct.unpack_from("<Q", data, 512 + 32 * section + 8)
    data[offset + at] ^= 1
    path.write_bytes(data)


def test_check(items, tmp_path):
    path = tmp_path / "items.sli"
    assert items.check() == shortlist.ItemsCheckReport(0, 0, 0, 0, 0)
    items.save(path)
    again = shortlist.Items.open(path)
    assert again.check() == shortlist.ItemsCheckReport(200, 4, 4, path.stat().st_size, 0)
    told = []
    again.check(progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    with pytest.raises(RuntimeError, match="enough"):
        again.check(progress=stop)


def stop(done, total):
    raise RuntimeError("enough")


def test_damage_stays_damage(items, tmp_path):
    path = tmp_path / "items.sli"
    items.save(path)
    flip(path, 3)
    damaged = path.read_bytes()
    again = shortlist.Items.open(path)
    with pytest.raises(shortlist.Error, match="texts of the columns") as caught:
        again.check()
    assert caught.value.status == "SL_ECORRUPT"
    assert caught.value.report.rows == 200 and 0 < caught.value.report.bytes_checked < len(damaged)
    again.update({"id": [3], "shop": [77]})
    for target in (path, tmp_path / "other.sli"):
        with pytest.raises(shortlist.Error, match="texts of the columns") as caught:
            again.save(target)
        assert caught.value.status == "SL_ECORRUPT"
    assert path.read_bytes() == damaged and os.listdir(tmp_path) == ["items.sli"]


@pytest.mark.parametrize("kind", ["csv", "pandas", "arrow", "structured"])
def test_every_kind_of_data(kind, items, data, tmp_path):
    if kind == "csv":
        other = shortlist.Items(write_csv(tmp_path / "items.csv", data))
    elif kind == "pandas":
        other = shortlist.Items(pytest.importorskip("pandas").DataFrame(data))
    elif kind == "arrow":
        other = shortlist.Items(pytest.importorskip("pyarrow").table(data))
    else:
        records = np.zeros(200, [("id", "u8"), ("shop", "i4"), ("price", "f8"), ("tags", "O")])
        for name in ("id", "shop", "price"):
            records[name] = data[name]
        records["tags"][:] = data["tags"]
        other = shortlist.Items(records)
    ids = data["id"]
    assert other.get(ids, "shop") == items.get(ids, "shop")
    np.testing.assert_array_equal(
        np.array(other.get(ids, "price")["price"], float), np.array(items.get(ids, "price")["price"], float)
    )
    assert other.get(ids, "tags") == items.get(ids, "tags")


def test_ids(data):
    ids = np.array([2**64 - 2, 2**63 + 1, 5], np.uint64)
    items = shortlist.Items({"item": ids, "shop": [1, 2, 3]}, id="item")
    assert items.get(ids, "shop") == {"shop": ["1", "2", "3"]}
    with pytest.raises(ValueError, match="3"):
        shortlist.Items({"id": [3, 4, 3], "shop": [1, 2, 3]})
    with pytest.raises(KeyError, match="id"):
        shortlist.Items({"shop": [1, 2, 3]})
    with pytest.raises(ValueError):
        shortlist.Items({"id": ["a", "b"], "shop": [1, 2]})


def test_updates(items, data, tmp_path):
    items.update({"id": [3, 1000], "shop": [77, 78], "price": [1.5, 2.5]})
    assert len(items) == 201
    found = items.get([3, 1000, 6], ["shop", "tags"])
    assert found["shop"] == ["77", "78", str(data["shop"][2])] and found["tags"][1] == ""
    items.save(tmp_path / "items.sli")
    again = shortlist.Items.open(tmp_path / "items.sli")
    assert again.get([3, 1000, 6], ["shop", "tags"]) == found
    again.update({"id": [9], "shop": [5]})
    assert again.get(9, "shop") == {"shop": ["5"]}
    with pytest.raises(ValueError):
        items.update({"id": [12, 12], "shop": [1, 2]})
    assert items.get(12, "shop") == {"shop": [str(data["shop"][4])]}
    with pytest.raises(KeyError, match="id"):
        items.update({"shop": [1]})
    with pytest.raises(ValueError, match="memory"):
        items.update("items.csv")


def test_partial_updates(items, data):
    before = items.get([3, 6], ["shop", "price", "tags"])
    items.update({"id": [6, 3], "shop": [71, 70]}, partial=True)
    after = items.get([3, 6], ["shop", "price", "tags"])
    assert after == before | {"shop": ["70", "71"]}
    with pytest.raises(KeyError, match="row 1: column 'id': id 1000 is not in the item table"):
        items.update({"id": [3, 1000], "shop": [1, 2]}, partial=True)
    with pytest.raises(KeyError, match="colour"):
        items.update({"id": [3], "colour": ["red"]}, partial=True)
    with pytest.raises((TypeError, ValueError), match="shop"):
        items.update({"id": [3], "shop": ["corner"]}, partial=True)
    with pytest.raises(ValueError, match="memory"):
        items.update("items.csv", partial=True)
    assert items.get([3, 6], ["shop", "price", "tags"]) == after and len(items) == 200


def test_deletes(items, data, tmp_path):
    items.delete([3, 6])
    items.delete(9)
    items.delete([])
    assert len(items) == 197
    for call in (
        lambda: items.get(3, "shop"),
        lambda: items.delete([12, 3]),
        lambda: items.delete([12, 15, 12]),
        lambda: items.update({"id": [9], "shop": [1]}, partial=True),
    ):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(ValueError, match="one id or"):
        items.delete([[1, 2]])
    with pytest.raises(KeyError, match="number 1: id 3 is not in the item table"):
        items.delete([12, 3])
    assert len(items) == 197 and items.get(12, "shop") == {"shop": [str(data["shop"][4])]}
    items.save(tmp_path / "items.sli")
    again = shortlist.Items.open(tmp_path / "items.sli")
    assert len(again) == 197
    with pytest.raises(KeyError):
        again.get(6, "shop")
    again.update({"id": [6], "shop": [5]})
    assert len(again) == 198 and again.get(6, ["shop", "price"]) == {"shop": ["5"], "price": [""]}


def test_readers_beside_updates(items):
    """A row is seen as it was or as it is, never half of each."""
    done = []

    def update():
        try:
            for i in range(300):
                items.update({"id": np.arange(0, 30, 3), "shop": np.full(10, i), "price": np.full(10, float(i))})
        finally:
            done.append(True)

    def read():
        while not done:
            assert int(items.get(6, "shop")["shop"][0]) <= 300

    run_together(update, read, read)
    assert items.get(6, "shop") == {"shop": ["299"]}


def test_progress_cancels(data, tmp_path):
    with pytest.raises(RuntimeError, match="enough"):
        shortlist.Items(columns(50_000) | {"id": np.arange(50_000)}, progress=stop)
    with pytest.raises(RuntimeError, match="enough"):
        shortlist.Items(data).save(tmp_path / "items.sli", progress=stop)
    assert os.listdir(tmp_path) == []


def test_python_runs_while_items_are_made(counter, tmp_path):
    many = {"id": np.arange(20_000), "price": np.ones(20_000), "shop": ["ab"] * 20_000}
    table = shortlist._columns.table(many)
    core = shortlist.Items(many)._core
    name = os.fsencode(tmp_path / "items.sli")
    calls = {
        "create": lambda: shortlist._core.Items.create(table, "id", None),
        "update": lambda: core.update(table, False),
        "set": lambda: core.update(table, True),
        "save": lambda: core.save(name, None),
        "open": lambda: shortlist._core.Items.open(name, "id", False, 0.0),
        "check": lambda: shortlist._core.Items.open(name, "id", False, 0.0).check(None),
    }
    assert not [what for what, call in calls.items() if not moves(counter, call)]


def test_no_save_undoes_an_update(tmp_path):
    path = tmp_path / "items.sli"
    shortlist.Items({"id": np.arange(3), "x": np.arange(3.0)}).save(path)
    first, second = shortlist.Items.open(path), shortlist.Items.open(path)
    first.update({"id": np.array([7]), "x": np.array([1.0])})
    first.save(path)
    with pytest.raises(shortlist.Error, match="replaced or changed by another") as failure:
        second.save(path)
    assert failure.value.status == "SL_EBUSY"
    with pytest.raises(ValueError, match="wait"):
        shortlist.Items.open(path, wait=-1)
    claimed = shortlist.Items.open(path, exclusive=True)
    with pytest.raises(shortlist.Error, match="is being written") as failure:
        shortlist.Items.open(path, exclusive=True, wait=0.05)
    assert failure.value.status == "SL_EBUSY"
    claimed.update({"id": np.array([8]), "x": np.array([1.0])})
    claimed.save(path)
    assert len(shortlist.Items.open(path)) == 5
