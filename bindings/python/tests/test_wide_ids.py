"""An id of up to 64 bits is the one that its text says, in every container, beside every neighbour, for every use."""

from __future__ import annotations

import sys
from decimal import Decimal

import numpy as np
import pytest

import shortlist
from shortlist import _columns

# Above 2**53 floats are too coarse for these, above 2**63 int64 is too small.
IDS = [2**53 + 1, 2**53, 2**60 + 1, 2**60 + 3, 2**63 - 1, 2**63 + 1, 2**63 + 2, 2**64 - 2]
NEIGHBOURS = {
    "alone": [],
    "small": [5, 0],
    "none": [None],
    "none and small": [None, 7],
    "negative": [-1],
    "nan": [float("nan")],
    "fraction": [0.5],
    "all": [None, 7, -1, float("nan"), 0.5, -(2**63)],
}


def pandas():
    return pytest.importorskip("pandas")


def arrow():
    return pytest.importorskip("pyarrow")


def present(values):
    return [value for value in values if value is not None and value == value]


def typed(values):
    """The smallest NumPy integer that holds each of the values, if it is one."""
    return [value if value in (None, 0.5) or value != value else np.min_scalar_type(value).type(value) for value in values]


def unsigned(values):
    """Values of what only unsigned numbers and missing ones can be in; skips the others."""
    if any(value < 0 or value == 0.5 for value in present(values)):
        pytest.skip("an unsigned container has no such value")
    return [value if value in present(values) else None for value in values]


def signed(values):
    if any(value > 2**63 - 1 or value == 0.5 for value in present(values)):
        values = [value for value in values if value is None or value != value or abs(value) < 2**63 and value != 0.5]
    return [value if value in present(values) else None for value in values]


def masked(values):
    values = unsigned(values)
    return np.ma.masked_array([value or 0 for value in values], [value is None for value in values], np.uint64)


def categorical(values):
    """Categories of Python's numbers: pandas by itself makes floats of ids beside a fraction."""
    categories = pandas().Index(list(dict.fromkeys(present(values))), dtype=object)
    return pandas().Categorical(np.array(values, object), categories=categories)


def chunked(values):
    pa, half = arrow(), len(values) // 2
    return pa.chunked_array([pa.array(part, pa.uint64()) for part in (values[:half], values[half:])])


class Foreign:
    """As a column of polars': its array is one of floats where a value is missing, its stream is exact."""

    def __init__(self, values):
        self.exact = chunked(values)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.exact.__arrow_c_stream__(requested_schema)

    def __array__(self, dtype=None, copy=None):
        return np.array([np.nan if value is None else value for value in self.exact.to_pylist()], np.float64)

    def __len__(self):
        return len(self.exact)

    def __iter__(self):
        return iter(self.exact.to_pylist())


class ForeignLists(Foreign):
    """A column of lists: by iteration it gives columns and no lists, as polars' does."""

    def __iter__(self):
        return iter([object() for _ in self.to_list()])


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "numpy scalars": typed,
    "texts beside numbers": lambda values: ["a text", *values],
    "decimals": lambda values: [value if value is None else Decimal(value) for value in values],
    "object array": lambda values: np.array(values, object),
    "unsigned array": lambda values: np.array(unsigned(present(values)), np.uint64),
    "big-endian array": lambda values: np.array(unsigned(present(values)), ">u8"),
    "masked array": masked,
    "object series": lambda values: pandas().Series(values, dtype=object),
    "object index": lambda values: pandas().Index(values, dtype=object),
    "UInt64 series": lambda values: pandas().Series(unsigned(values), dtype="UInt64"),
    "UInt64 array": lambda values: pandas().array(unsigned(values), dtype="UInt64"),
    "uint64 series": lambda values: pandas().Series(unsigned(present(values)), dtype="uint64"),
    "Int64 series": lambda values: pandas().Series(signed(values), dtype="Int64"),
    "arrow series": lambda values: pandas().Series(
        unsigned(values), dtype=pandas().ArrowDtype(arrow().uint64())
    ),
    "categorical": categorical,
    "categorical series": lambda values: pandas().Series(categorical(values)),
    "categorical index": lambda values: pandas().CategoricalIndex(categorical(values)),
    "uint64 categories": lambda values: pandas().Series(np.array(unsigned(present(values)), np.uint64)).astype("category"),
    "frame's categories": lambda values: pandas().DataFrame({"id": categorical(values)})["id"],
    "arrow": lambda values: arrow().array(unsigned(values), arrow().uint64()),
    "arrow slice": lambda values: arrow().array([1, *unsigned(values)], arrow().uint64()).slice(1),
    "arrow int64": lambda values: arrow().array(signed(values), arrow().int64()),
    "arrow chunks": lambda values: chunked(unsigned(values)),
    "arrow dictionary": lambda values: arrow().array(unsigned(values), arrow().uint64()).dictionary_encode(),
    "arrow dictionary chunks": lambda values: chunked(unsigned(values)).dictionary_encode(),
    "arrow decimal": lambda values: arrow().array(signed([v for v in values if v != 0.5]), arrow().decimal128(20, 0)),
    "arrow decimals of 38 digits": lambda values: arrow().array(
        [v if v is None or v != v else Decimal(v) for v in unsigned(values)], arrow().decimal128(38, 4)
    ),
    "foreign": lambda values: Foreign(unsigned(values)),
}


def text_of(value):
    if value is None or type(value).__name__ == "NAType" or value != value:
        return None
    return str(int(value)) if not isinstance(value, str) and value == int(value) else str(value)


def texts_of(container):
    """The texts of a container's values, read without this package."""
    if hasattr(container, "to_pylist"):
        values = container.to_pylist()
    elif np.ma.isMaskedArray(container) or not hasattr(container, "__array__") or isinstance(container, np.ndarray):
        values = container.tolist() if hasattr(container, "tolist") else list(container)
    else:
        values = list(container)
    return [text_of(value) for value in values]


def spec(*features, **more):
    label = {"column": "y", "loss": "squared"}
    return {"label": label, "features": list(features), "deep": {"hidden": [2]}, **more}


USES = {
    "categorical": {"name": "id", "type": "categorical", "hash": 10**6, "dim": 1},
    "multi": {"name": "id", "type": "multi", "hash": 10**6, "dim": 1},
}
CROSS = {"name": "both", "type": "cross", "of": ["id", "other"], "hash": 10**6}
OTHER = {"name": "other", "type": "categorical", "vocabulary": ["x"], "dim": 1}


@pytest.fixture(scope="module")
def encoders():
    rows = {"id": ["a"], "other": ["x"], "y": [0.0]}
    made = {name: shortlist.Ranker.create(spec(one, OTHER, CROSS), rows) for name, one in USES.items()}

    def encode(use, column, rows):
        found = made[use].encode({"id": column, "other": ["x"] * rows})
        return [array.tolist() for array in (found.ids, found.bag_start, found.bag_ids)]

    return encode


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_an_id_is_what_its_text_says(encoders, container, neighbour):
    column = CONTAINERS[container](IDS + NEIGHBOURS[neighbour])
    texts = texts_of(column)
    assert len({text for text in texts if text}) >= 4
    for use in USES:
        assert encoders(use, column, len(texts)) == encoders(use, texts, len(texts)), use


LISTS = {
    "lists": list,
    "tuples": tuple,
    "arrays": lambda values: np.array(unsigned(present(values)), np.uint64),
    "object arrays": lambda values: np.array(values, object),
    "numpy scalars": typed,
}


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
@pytest.mark.parametrize("container", [*LISTS, "arrow", "arrow decimals"])
def test_ids_in_lists_are_what_their_texts_say(encoders, container, neighbour):
    values = IDS + NEIGHBOURS[neighbour]
    if container == "arrow":
        column = arrow().array([unsigned(values), None, [3]], arrow().list_(arrow().uint64()))
    elif container == "arrow decimals":
        column = arrow().array([unsigned(values), None, [3]], arrow().large_list(arrow().decimal128(20, 0)))
    else:
        column = [LISTS[container](values), None, [3]]
        values = present(values) if container == "arrays" else values
    texts = [[text_of(value) or "" for value in values], None, ["3"]]
    assert encoders("multi", column, 3) == encoders("multi", texts, 3)
    if container in LISTS:
        frame = pandas().DataFrame({"id": column})
        assert encoders("multi", frame["id"], 3) == encoders("multi", texts, 3)


def test_a_foreign_column_without_pyarrow(encoders, monkeypatch):
    """Its own list counts: by iteration a column of lists gives columns, and its array is one of floats."""
    ids = [*IDS, None]
    single, several = Foreign(ids), ForeignLists(ids)
    single.to_list = lambda: ids
    several.to_list = lambda: [[i] for i in ids]
    texts = [text_of(i) for i in ids]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for use in USES:
        assert encoders(use, single, len(ids)) == encoders(use, texts, len(ids))
    assert encoders("multi", several, len(ids)) == encoders("multi", [[text or ""] for text in texts], len(ids))


def test_a_number_is_the_same_category_beside_any_other():
    """The text of each number alone, among others of its kind and among texts is the same."""
    numbers = [5.0, 0.1, np.float32(0.1), np.float16(0.5), 1e-7, 1e22, -0.0, True, np.bool_(False), 2**53, 5e-324]
    numbers += [1234567890123456.5, np.float64(2.0**70), Decimal("1.50"), Decimal("7.0"), Decimal("0.1"), 123456789.25]
    features = spec({"name": "id", "type": "categorical", "hash": 10**6, "dim": 1})
    rk = shortlist.Ranker.create(features, {"id": ["a"], "y": [0.0]})

    def ids(column):
        return rk.encode({"id": column}).ids[:, 0].tolist()

    alone = [ids([number])[0] for number in numbers]
    for more in ([], ["a text"], [2**63 + 1], [None], [float("nan"), -1]):
        assert ids([*numbers, *more])[: len(numbers)] == alone, more
    assert ids([np.array([number], number.dtype)[0] if hasattr(number, "dtype") else number for number in numbers]) == alone
    arrays = [number for number in numbers if hasattr(number, "dtype")]
    assert [ids(np.array([number]))[0] for number in arrays] == [alone[numbers.index(number)] for number in arrays]
    assert alone[0] == ids(["5"])[0] and alone[1] == ids(["0.1"])[0] and alone[13] == ids(["1.5"])[0]


@pytest.mark.parametrize("column", [[2**60 + 1, float("inf")], [2**63 + 1, float("-inf"), None], [Decimal("Infinity")]])
def test_infinite_numbers_beside_ids_are_refused(column):
    with pytest.raises(ValueError, match="'id'.*infinite"):
        _columns.table({"id": column})


def test_vocabularies_learn_wide_ids():
    ids = [*IDS, *IDS, None, -1]
    features = spec({"name": "id", "type": "categorical", "dim": 1})
    rows = {"id": ids, "y": np.arange(len(ids), dtype=float)}
    rk = shortlist.Ranker.create(features, rows)
    texts = shortlist.Ranker.create(features, {**rows, "id": [text_of(i) for i in ids]})
    found = rk.encode({"id": ids}).ids[:, 0].tolist()
    assert len(set(found)) == len(IDS) + 2
    assert found == texts.encode({"id": ids}).ids[:, 0].tolist() == rk.encode({"id": [text_of(i) for i in ids]}).ids[:, 0].tolist()


def test_labels_and_groups_of_wide_ids():
    ids = [2**63 + 1, 2**63 + 2, 7, None]
    label = {"column": "kind", "loss": "multiclass"}
    numeric = {"name": "x", "type": "numeric"}
    kinds = [2**63 + 1, 2**63 + 2, 2**53 + 1, 2**53, 3] * 4
    rows = {"kind": kinds, "x": np.arange(20, dtype=float)}
    rk = shortlist.Ranker.create(spec(numeric, label=label), rows)
    assert rk.info.outputs == 5
    binary = shortlist.Ranker.create(spec(numeric, label={"column": "y"}), {"x": np.arange(8.0), "y": [0, 1] * 4})
    rows = {"x": np.arange(8.0), "y": [0, 1] * 4, "who": [i for i in ids for _ in (0, 1)]}
    texts = {**rows, "who": [None if i is None else str(i) for i in rows["who"]]}
    assert binary.evaluate(rows, group="who").groups == binary.evaluate(texts, group="who").groups == 4


@pytest.mark.parametrize("container", [name for name in CONTAINERS if "text" not in name])
def test_items_by_wide_ids(container):
    for values in (IDS, [*IDS, 5, 0]):
        column = CONTAINERS[container](values)
        ids = [int(text) for text in texts_of(column)]
        items = shortlist.Items({"id": column, "kind": list(range(len(ids)))})
        assert items.get(ids, ["id", "kind"]) == {"id": list(map(str, ids)), "kind": list(map(str, range(len(ids))))}


def test_items_are_updated_by_ids_of_any_width():
    items = shortlist.Items({"id": np.array([2**63 + 1, 2**63 + 2], np.uint64), "kind": [1, 2]})
    items.update({"id": np.array([5, 2**60 + 1], np.uint64), "kind": [3, 4]})
    items.update({"id": [2**63 + 2], "kind": [5]})
    ids = [2**63 + 1, 2**63 + 2, 5, 2**60 + 1]
    assert items.get(ids, ["id", "kind"]) == {"id": list(map(str, ids)), "kind": ["1", "5", "3", "4"]}
    small = shortlist.Items({"id": [5], "kind": [1]})
    with pytest.raises(ValueError, match=r"9223372036854775809 does not fit.*make the table anew"):
        small.update({"id": [2**63 + 1], "kind": [5]})
    assert len(small) == 1


NOT_OF_AN_INDEX = ("decimal", "text", "foreign", "masked")


@pytest.mark.parametrize("container", [name for name in CONTAINERS if not any(word in name for word in NOT_OF_AN_INDEX)])
def test_an_index_takes_wide_ids(container):
    column = CONTAINERS[container]([*IDS, 5])
    ids = [int(text) for text in texts_of(column)]
    x = np.eye(len(ids), dtype=np.float32)
    index = shortlist.Index(len(ids), "ip")
    index.add(x, ids=column)
    assert sorted(index.ids().tolist()) == sorted(ids)
    assert all(i in index for i in ids) and 2**63 + 3 not in index and 2**60 not in index
    np.testing.assert_allclose(index.get(column), x, rtol=1e-6)
    assert index.search(x, 1)[0][:, 0].tolist() == ids
    assert sorted(index.search(x[0], len(ids), filter=column)[0].tolist()) == sorted(ids)
    assert len(shortlist.Filter(index, exclude=column)) == 0 and len(shortlist.Filter(index, column)) == len(ids)
    index.delete(column[:4])
    assert sorted(index.ids().tolist()) == sorted(ids[4:])


def test_vectors_are_looked_up_by_wide_ids():
    asked = []

    def lookup(feature, label):
        asked.append(label)
        return np.zeros(2, np.float32)

    vector = {"name": "v", "type": "vector", "dim": 2, "source": "index"}
    rows = {"v": np.zeros((2, 2), np.float32), "y": [0.0, 1.0]}
    rk = shortlist.Ranker.create(spec(vector), rows)
    rk.encode({"v": [2**63 + 1, None, 7]}, lookup=lookup)
    assert asked == [2**63 + 1, 7]
    with pytest.raises(ValueError, match="'-1' is no id"):
        rk.encode({"v": [7, -1]}, lookup=lookup)
