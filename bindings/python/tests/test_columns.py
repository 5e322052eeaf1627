"""Every kind of data gives the same numbers, and what cannot be taken is refused by name."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from clicks import CITIES, DIM, columns, spec, write_csv

import shortlist
from shortlist import _columns


@pytest.fixture(scope="module")
def data():
    return columns()


@pytest.fixture(scope="module")
def rk(data):
    return shortlist.Ranker.create(spec(), data, seed=5)


@pytest.fixture(scope="module")
def expected(rk, data):
    scores = rk.predict(data)
    assert scores.shape == (400,) and scores.dtype == np.float32 and np.isfinite(scores).all()
    assert len(np.unique(scores)) > 300
    return scores


def same(rk, data, expected):
    """The same scores, of part of the rows but for rounding: oneDNN may add up few rows otherwise than many."""
    np.testing.assert_allclose(rk.predict(data), expected, rtol=0 if len(expected) == 400 else 1e-6)


def as_pandas(data):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({**data, "face": list(data["face"])})


def as_arrow(data, **types):
    pa = pytest.importorskip("pyarrow")
    face = pa.FixedSizeListArray.from_arrays(pa.array(data["face"].ravel()), DIM)
    plain = {name: values for name, values in data.items() if name != "face"}
    arrays = {name: pa.array(values, types.get(name), from_pandas=True) for name, values in plain.items()}
    return pa.table({**arrays, "face": face})


def test_lists(rk, data, expected):
    lists = {name: values if isinstance(values, list) else values.tolist() for name, values in data.items()}
    lists["face"] = [row.tolist() for row in data["face"]]
    same(rk, lists, expected)


def test_one_call_leaves_nothing_behind_for_the_next(rk, data, expected):
    """Scratch is used again: with columns in another order, more of them, and after calls that failed."""
    turned = dict(reversed(list(data.items())))
    for other in (turned, {"more": data["price"], **data}, turned, data):
        same(rk, other, expected)
        same(rk, {name: values[:3] for name, values in other.items()}, expected[:3])
        with pytest.raises(KeyError):
            rk.predict({"age": data["age"]})
        with pytest.raises(ValueError, match="row"):
            rk.predict({**other, "price": [*data["price"][:-1].tolist(), "cheap"]})


def test_single_values_are_one_row(rk):
    row = {"age": 30, "price": 2.5, "city": "Oslo", "shop": np.int64(3), "click": 0}
    full = {**{name: [value] for name, value in row.items()}, "tags": [["red"]], "face": np.ones((1, DIM))}
    with pytest.raises(ValueError, match="age"):
        rk.predict({**full, "age": 30})
    plain = [f for f in spec()["features"] if f["name"] not in ("tags", "face", "city_x_shop")]
    small = shortlist.Ranker.create(spec(features=plain), columns())
    assert small.predict(row).shape == (1,)
    same(small, full, small.predict(row))


@pytest.mark.parametrize("kind", ["float32", ">f4", ">f8", "float16", "longdouble"])
def test_number_types(rk, data, expected, kind):
    same(rk, {**data, "age": data["age"].astype(kind)}, expected)


@pytest.mark.parametrize("kind", ["int8", "uint8", ">i2", "uint16", "int32", ">u4", "int64", "uint64", "U8", "S8", "O"])
def test_id_types(rk, data, expected, kind):
    same(rk, {**data, "shop": data["shop"].astype(kind)}, expected)


def test_unsigned_ids_beyond_the_signed_range():
    ids = np.array([2**64 - 2, 2**63, 5], np.uint64)
    features = [{"name": "id", "type": "categorical", "dim": 2}]
    rk = shortlist.Ranker.create(
        {"label": {"column": "y"}, "features": features, "deep": {"hidden": [4]}},
        {"id": [str(i) for i in ids.tolist()], "y": [0, 1, 0]},
    )
    texts = rk.encode({"id": [str(i) for i in ids.tolist()]}).ids
    np.testing.assert_array_equal(rk.encode({"id": ids}).ids, texts)
    assert len(np.unique(texts)) == 3


@pytest.mark.parametrize(
    "layout",
    [
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a[::-1].copy()[::-1],
        np.asfortranarray,
        lambda a: a.astype(a.dtype.newbyteorder(">")),
        lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
        lambda a: a.astype(np.float64),
    ],
    ids=["strided", "reversed", "fortran", "endian", "unaligned", "float64"],
)
def test_layouts(rk, data, expected, layout):
    moved = {**data, "age": layout(data["age"]), "face": layout(data["face"])}
    for array in (moved["age"], moved["face"]):
        array.setflags(write=False)
    same(rk, moved, expected)


def test_masked_arrays(rk, data, expected):
    hidden = np.isnan(data["age"])
    same(rk, {**data, "age": np.ma.masked_array(np.where(hidden, 1e9, data["age"]), hidden)}, expected)
    whole = np.where(hidden, 7, data["age"]).astype(np.int16)
    same(rk, {**data, "age": np.ma.masked_array(whole, hidden)}, expected)


def test_missing_values_of_every_kind(rk, data, expected):
    gone = [None if np.isnan(value) else value for value in data["age"].tolist()]
    same(rk, {**data, "age": gone}, expected)
    whole = [None if np.isnan(value) else int(value) for value in data["age"].tolist()]
    same(rk, {**data, "age": whole}, expected)
    for nothing in ("", float("nan"), np.float32("nan")):
        same(rk, {**data, "city": [nothing if city is None else city for city in data["city"]]}, expected)


def test_structured_arrays(rk, data, expected):
    kinds = [("click", "i8"), ("age", ">f8"), ("price", "f4"), ("city", "U20"), ("shop", "i2"), ("face", "f4", (DIM,))]
    records = np.zeros(400, [*kinds, ("tags", "O")])
    for name, values in data.items():
        if name == "tags":
            for row, tags in enumerate(values):
                records["tags"][row] = tags
        else:
            records[name] = [city or "" for city in values] if name == "city" else values
    same(rk, records, expected)
    same(rk, records[::2], expected[::2])


def test_pandas(rk, data, expected):
    frame = as_pandas(data)
    same(rk, frame, expected)
    same(rk, frame.iloc[::-3], expected[::-3])
    same(rk, frame.astype({"city": "category", "shop": "category"}), expected)
    same(rk, frame.astype({"city": object, "shop": "string"}), expected)
    frame["age"] = frame["age"].astype("Int64")
    same(rk, frame, expected)
    same(rk, {name: frame[name] for name in frame}, expected)
    same(rk, frame.convert_dtypes(), expected)


def test_pandas_without_pyarrow(rk, data, expected, monkeypatch):
    frame = as_pandas(data).astype({"city": object})
    frame["age"] = frame["age"].astype("Int64")
    frame["shop"] = frame["shop"].astype("category")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    same(rk, frame, expected)


def test_arrow(rk, data, expected):
    pa = pytest.importorskip("pyarrow")
    table = as_arrow(data)
    same(rk, table, expected)
    same(rk, table.combine_chunks().to_batches()[0], expected)
    for first, count in ((3, 100), (8, 41), (399, 1), (400, 0)):
        same(rk, table.slice(first, count), expected[first : first + count])
    same(rk, pa.concat_tables([table.slice(0, 10), table.slice(10)]), expected)
    same(rk, {name: table.column(name) for name in table.schema.names}, expected)


def test_arrow_types(rk, data, expected):
    pa = pytest.importorskip("pyarrow")
    large = as_arrow(data, city=pa.large_string(), tags=pa.large_list(pa.large_string()), shop=pa.int8())
    same(rk, large, expected)
    coded = as_arrow(data, age=pa.int16(), shop=pa.uint32())
    at = coded.schema.get_field_index("city")
    coded = coded.set_column(at, "city", coded.column("city").dictionary_encode())
    same(rk, coded, expected)
    same(rk, coded.slice(5, 50), expected[5:55])
    views = as_arrow(data, city=pa.string_view(), shop=pa.uint64())
    same(rk, views, expected)
    faces = pa.array(data["face"].tolist(), pa.list_(pa.float64()))
    same(rk, as_arrow(data).drop_columns(["face"]).append_column("face", faces), expected)


STRANGE = {
    "list_view": lambda pa: pa.array([["a", "b"], ["c"]], pa.list_view(pa.string())),
    "large_list_view": lambda pa: pa.array([[1, 2], [3]], pa.large_list_view(pa.int64())),
    "list_view of floats": lambda pa: pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_view(pa.float32())),
    "empty list_view": lambda pa: pa.array([], pa.list_view(pa.int64())),
    "list_view chunks": lambda pa: pa.chunked_array([pa.array([[1]], pa.list_view(pa.int64()))] * 2),
    "list of list_view": lambda pa: pa.array([[[1]], [[2]]], pa.list_(pa.list_view(pa.int64()))),
    "list of lists": lambda pa: pa.array([[[1]], [[2]]]),
    "fixed lists of structs": lambda pa: pa.array([[{"a": 1}]] * 2, pa.list_(pa.struct([("a", pa.int64())]), 1)),
    "struct with a view in its name": lambda pa: pa.array([{"view": 1}] * 2),
    "map": lambda pa: pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
    "timestamp": lambda pa: pa.array([1, 2], pa.timestamp("s")),
    "run-end encoded": lambda pa: pa.RunEndEncodedArray.from_arrays([2], [7]),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_arrow_types_that_cannot_be_are_refused_by_name(kind):
    pa = pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    try:
        values = STRANGE[kind](pa)
    except (AttributeError, pa.ArrowNotImplementedError):
        pytest.skip("this pyarrow has no such type")
    said = "make lists of it" if "list_view" in kind and kind != "list of list_view" else "it must hold numbers"
    given = [{"odd": values}, pa.table({"odd": values})]
    if kind not in ("struct with a view in its name", "map", "timestamp"):  # pandas has these as its own
        given.append(pandas.DataFrame({"odd": pandas.Series(values, dtype=pandas.ArrowDtype(values.type))}))
    for data in given:
        with pytest.raises(ValueError, match=f"'odd' holds Arrow's .*({said})"):
            _columns.table(data)


def test_what_a_refusal_of_views_advises_is_taken():
    pa = pytest.importorskip("pyarrow")
    if not hasattr(pa, "list_view"):
        pytest.skip("this pyarrow has no list_view")
    values = pa.array([["a", "b"], None, ["c"]], pa.list_view(pa.string()))
    assert _columns.table({"tags": pa.array(values.to_pylist())}).rows == 3


def test_arrow_buffers_are_not_copied(data):
    pa = pytest.importorskip("pyarrow")
    from shortlist import _arrow

    def place(values):
        return np.frombuffer(values, np.uint8).ctypes.data

    numbers = pa.array(data["price"])
    assert _arrow.column("price", numbers.slice(3)).values.ctypes.data == numbers.buffers()[1].address + 24
    texts = pa.array(data["city"], pa.large_string())
    column = _arrow.column("city", texts)
    assert place(column.values) == texts.buffers()[2].address
    assert column.offsets.ctypes.data == texts.buffers()[1].address


def test_what_else_has_arrows_stream(rk, data, expected):
    table = as_arrow(data)

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    class Convertible:
        def to_arrow(self):
            return table

    same(rk, Stream(), expected)
    same(rk, Convertible(), expected)


def test_csv(rk, data, expected, tmp_path):
    path = write_csv(tmp_path / "clicks.csv", data)
    same(rk, path, expected)
    same(rk, tmp_path / "clicks.csv", expected)
    found, also = rk.encode(path), rk.encode(data)
    for mine, theirs in zip(found, also):
        np.testing.assert_array_equal(mine, theirs)


def test_no_rows(rk, data, tmp_path):
    nothing = {name: values[:0] for name, values in data.items()}
    assert rk.predict(nothing).shape == (0,)
    encoded = rk.encode(nothing)
    assert encoded.dense.shape == (0, rk.info.dense_width) and encoded.bag_start.tolist() == [0]
    assert rk.predict(write_csv(tmp_path / "none.csv", nothing)).shape == (0,)


def test_training_on_every_kind_is_the_same(data, tmp_path):
    kinds = [data, write_csv(tmp_path / "clicks.csv", data), as_pandas(data), as_arrow(data)]
    scores = [shortlist.Ranker.train(spec(), kind, threads=1).predict(data) for kind in kinds]
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])


@pytest.mark.parametrize(
    "values, message",
    [
        (np.ones((400, 2, 2)), "shape"),
        (np.zeros(400, "M8[s]"), "datetime64"),
        (np.zeros(400, complex), "complex"),
        ([["a"]] * 399 + ["b"], "lists beside single values"),
        ([{}] * 400, "dict"),
        (["a\ud800"] * 400, "UTF-8"),
        (np.ones(399), "different lengths"),
        ("text", "one str"),
    ],
)
def test_columns_that_cannot_be(rk, data, values, message):
    with pytest.raises(ValueError, match=message) as caught:
        rk.predict({**data, "city": values})
    assert "city" in str(caught.value)


def test_columns_that_are_not_used_may_be_of_any_type(rk, data, expected):
    odd = {"odd": np.full(400, 1j), "when": np.full(400, "2026-01-02", "datetime64[D]"), "things": [{}] * 400}
    same(rk, {**odd, **data}, expected)
    pandas = pytest.importorskip("pandas")
    same(rk, as_pandas(data).assign(**{name: list(values) for name, values in odd.items()}), expected)
    frame = as_pandas(data).assign(when=pandas.Timestamp("2026-01-02"), took=pandas.Timedelta(1))
    same(rk, frame, expected)
    ranker = shortlist.Ranker.create(spec(), frame, seed=5)
    same(ranker, frame, expected)
    with pytest.raises(ValueError, match="odd"):
        rk.evaluate({**odd, **data}, group="odd")
    with pytest.raises(ValueError, match="things"):
        shortlist.Items({"id": np.arange(400), "things": odd["things"]})


def test_columns_of_one_name_are_refused(rk, data):
    pandas = pytest.importorskip("pandas")
    frame = as_pandas(data)
    twice = pandas.concat([frame, frame[["price"]] + 1], axis=1)
    for rows in (twice, {**data, 1: data["price"], "1": data["price"]}):
        with pytest.raises(ValueError, match="2 columns are named '(price|1)'"):
            rk.predict(rows)
    table = as_arrow(data)
    with pytest.raises(ValueError, match="2 columns are named 'price'"):
        rk.predict(table.append_column("price", table.column("price")))


def test_masked_vectors_are_refused(rk, data):
    with pytest.raises(ValueError, match="face.*masked array of vectors"):
        rk.predict({**data, "face": np.ma.masked_invalid(data["face"])})


def test_vectors_of_different_lengths(rk, data):
    with pytest.raises(ValueError, match="face.*one length"):
        rk.predict({**data, "face": [[1.0] * 4] * 399 + [[1.0]]})


@pytest.mark.parametrize("wrong", [3, [1, 2], None, np.ones(3), object()])
def test_data_that_is_none(rk, wrong):
    with pytest.raises((TypeError, ValueError)):
        rk.predict(wrong)


def test_a_missing_column_is_a_key_error(rk, data):
    rest = {name: values for name, values in data.items() if name != "price"}
    with pytest.raises(KeyError, match="price.*its columns are .*city"):
        rk.predict(rest)
    with pytest.raises(KeyError, match="there.*its columns are .*city"):
        rk.evaluate(data, group="there")
    with pytest.raises(ValueError, match="price"):
        rk.predict({**data, "price": ["cheap"] * 400})


def test_a_csv_row_with_too_few_fields_names_its_line(rk, data, tmp_path):
    path = write_csv(tmp_path / "clicks.csv", data)
    lines = (tmp_path / "clicks.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "short.csv").write_text("\n".join([*lines[:10], "1,2", *lines[10:]]), encoding="utf-8")
    with pytest.raises(shortlist.Error, match="11") as caught:
        rk.predict(tmp_path / "short.csv")
    assert caught.value.status == "SL_EFORMAT"
    with pytest.raises((OSError, KeyError)):
        rk.predict(path + ".none")


def test_the_core_checks_what_it_is_given():
    """Nothing beyond a buffer is read, whatever offsets say."""
    table, text = shortlist._core.Table, "".join(CITIES).encode()
    good = np.array([0, 2, len(text)], np.int64)
    assert table(2, [("c", 4, 0, text, good, None, None)]).rows == 2
    for offsets in ([0, 2, len(text) + 1], [0, 5, 2], [-1, 2, 3], [0, 2], [2**62, 2**63 - 1, 2**63 - 1]):
        with pytest.raises(ValueError, match="'c'"):
            table(2, [("c", 4, 0, text, np.array(offsets, np.int64), None, None)])
    for lists in ([0, 1, 3], [0, 2, 1], [-1, 0, 1]):
        with pytest.raises(ValueError, match="'c'"):
            table(2, [("c", 5, 0, text, good, np.array(lists, np.int64), None)])
    short = ((0, np.ones(1, "f4")), (1, np.ones(2, "f4")), (3, np.ones(3, "i4")), (0, np.ones(4, "f4")[::2]))
    for kind, values in short:
        with pytest.raises((ValueError, BufferError)):
            table(2, [("c", kind, 0, values, None, None, None)])
    for bad in (("c", 9, 0, text, None, None, None), ("c", 6, 2**62, text, None, None, None), ("c", 0)):
        with pytest.raises(ValueError):
            table(2, [bad])
    with pytest.raises(ValueError):
        table(20, [("c", 0, 0, np.ones(20, "f4"), None, None, np.zeros(2, np.uint8))])
