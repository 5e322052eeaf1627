"""Training, asking, saving and taking apart a ranker."""

from __future__ import annotations

import json
import math
import os
import pathlib
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest
from clicks import DIM, columns, spec
from conftest import moves, run_together

import shortlist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import coded_model  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return columns(1000)


@pytest.fixture(scope="module")
def rk(data):
    return shortlist.Ranker.train(spec(), data, threads=1)


def test_a_ranker_learns(data):
    told = []
    rk = shortlist.Ranker.train(spec(), data, columns(300, seed=9), epochs=6, on_epoch=told.append)
    assert [epoch.epoch for epoch in told] == list(range(1, rk.report.epochs + 1))
    assert isinstance(told[0], shortlist.Epoch) and told[0].rows == 1000 and told[0].best is True
    assert told[-1].train_loss < told[0].train_loss
    assert (rk.report.rows, rk.report.valid_rows) == (1000, 300)
    assert 1 <= rk.report.best_epoch <= rk.report.epochs <= 6
    best = told[rk.report.best_epoch - 1]
    assert best.valid_loss == rk.report.valid_loss and best.valid_auc == rk.report.valid_auc > 0.7
    assert rk.report.rows_per_s > 0 and rk.report.wide_nonzero > 0


def test_precisions(data):
    reports = {p: shortlist.Ranker.train(spec(), data, threads=1, precision=p).report for p in ("f32", "bf16", "fp16")}
    for precision, report in reports.items():
        assert report.precision == precision and report.skipped_steps == 0
        assert report.loss_scale == (65536 if precision == "fp16" else None)
        assert abs(report.valid_auc - reports["f32"].valid_auc) < 0.05
    assert len({report.train_loss for report in reports.values()}) == 3
    assert reports["f32"].emulated is False
    auto = shortlist.Ranker.train(spec(), data, threads=1, precision="auto").report
    assert auto.emulated is False
    assert auto.train_loss == reports[auto.precision].train_loss
    assert (auto.precision == "bf16") is not reports["bf16"].emulated
    static = shortlist.Ranker.train(spec(), data, threads=1, precision="fp16", loss_scale=256).report
    assert static.loss_scale == 256


def test_precisions_that_cannot_be(data):
    for bad in ("int8", "FP16", 16, ""):
        with pytest.raises(ValueError, match="f32, bf16, fp16, auto"):
            shortlist.Ranker.train(spec(), data, precision=bad)
    for precision, scale in (("bf16", 8), (None, 8), ("fp16", 0.5), ("fp16", math.inf)):
        with pytest.raises(ValueError, match="loss_scale"):
            shortlist.Ranker.train(spec(), data, precision=precision, loss_scale=scale)


def test_resuming_keeps_the_precision(data, tmp_path):
    state = tmp_path / "state.slr"
    shortlist.Ranker.train(spec(), data, threads=1, precision="bf16", checkpoint=state, epochs=1)
    with pytest.raises(shortlist.Error, match="in bf16, and f32 is asked for"):
        shortlist.Ranker.train(spec(), data, threads=1, precision="f32", checkpoint=state, resume=True)
    resumed = shortlist.Ranker.train(spec(), data, threads=1, checkpoint=state, resume=True, epochs=2)
    whole = shortlist.Ranker.train(spec(), data, threads=1, precision="bf16", epochs=2)
    assert resumed.report.precision == "bf16"
    np.testing.assert_array_equal(resumed.predict(data), whole.predict(data))


def test_predictions_are_probabilities_and_do_not_depend_on_threads(rk, data):
    scores = rk.predict(data)
    assert scores.dtype == np.float32 and ((scores > 0) & (scores < 1)).all()
    np.testing.assert_allclose(rk.predict(data, threads=2), scores, atol=1e-6)
    np.testing.assert_allclose(rk.predict({**data, "unknown": data["age"]}, threads=0), scores, atol=1e-6)
    one = {name: values[5:6] for name, values in data.items() if name != "click"}
    np.testing.assert_allclose(rk.predict(one), scores[5:6], atol=1e-6)


@pytest.mark.parametrize("how", [dict, json.dumps, "path"])
def test_ways_to_give_a_spec(how, data, rk, tmp_path):
    given = spec()
    if how == "path":
        given = tmp_path / "spec.json"
        given.write_text(json.dumps(spec()))
        text = str(given)
        np.testing.assert_array_equal(shortlist.Ranker.train(text, data, threads=1).predict(data), rk.predict(data))
    else:
        given = how(given)
    again = shortlist.Ranker.train(given, data, threads=1)
    np.testing.assert_array_equal(again.predict(data), rk.predict(data))
    assert again.spec == spec() == rk.spec


def test_seed_and_epochs_in_place_of_the_specs(data, rk):
    other = shortlist.Ranker.train(spec(), data, threads=1, seed=7)
    assert not np.array_equal(other.predict(data), rk.predict(data))
    assert shortlist.Ranker.train(spec(), data, epochs=1).report.epochs == 1


def test_evaluate(rk, data):
    found = rk.evaluate(data, group="city", k=5)
    scores, labels = rk.predict(data).astype(np.float64), data["click"]
    loss = -np.mean(np.where(labels == 1, np.log(scores), np.log(1 - scores)))
    positive, negative = scores[labels == 1], scores[labels == 0]
    higher = (positive[:, None] > negative).mean() + 0.5 * (positive[:, None] == negative).mean()
    assert found.rows == 1000 and found.ndcg_k == 5 and found.groups > 3
    assert found.logloss == pytest.approx(loss, abs=1e-5) and found.auc == pytest.approx(higher, abs=1e-5)
    assert found.accuracy == pytest.approx(((scores > 0.5) == labels).mean(), abs=1e-9)
    assert found.base_rate == pytest.approx(labels.mean())
    assert 0 < found.group_auc <= 1 and 0 < found.ndcg <= 1
    assert found.decile_rows.sum() == 1000 and found.decile_score.shape == found.decile_label.shape == (10,)
    assert math.isnan(rk.evaluate(data).group_auc)
    with pytest.raises(KeyError, match="click"):
        rk.evaluate({name: values for name, values in data.items() if name != "click"})


def test_several_classes(data):
    label = {"column": "fruit", "loss": "multiclass"}
    rows = {**data, "fruit": [["apple", "pear", "plum"][i % 3] for i in range(1000)]}
    rk = shortlist.Ranker.train(spec(label=label), rows)
    scores = rk.predict(rows)
    assert scores.shape == (1000, 3) and rk.classes == ["apple", "pear", "plum"]
    np.testing.assert_allclose(scores.sum(1), 1, atol=1e-5)
    assert rk.info.loss == "multiclass" and rk.info.outputs == 3


def test_squared_loss(data):
    rk = shortlist.Ranker.train(spec(label={"column": "price", "loss": "squared"}), data)
    found = rk.evaluate(data)
    assert math.isnan(found.logloss) and found.rmse > 0 and rk.info.loss == "squared"
    assert math.isnan(found.ndcg)
    found = rk.evaluate({**data, "price": data["price"] * 1e6}, group="city")
    assert 0 < found.ndcg <= 1 and found.ndcg_linear
    assert not rk.evaluate({**data, "price": np.round(data["price"]) % 5}, group="city").ndcg_linear
    with pytest.raises(ValueError, match="NDCG takes labels of at least 0"):
        rk.evaluate({**data, "price": data["price"] - 1e3}, group="city")


def test_one_row_and_one_class(data):
    with pytest.raises(ValueError, match="1 row is left to train on"):
        shortlist.Ranker.train(spec(), {name: values[:1] for name, values in data.items()})
    with pytest.raises(ValueError, match="have the label 1"):
        shortlist.Ranker.train(spec(), {**data, "click": np.ones_like(data["click"])})


@pytest.mark.parametrize("weight", [0, 0.0, 1e-300, 1e-50])
def test_weights_of_zero_are_told_as_such(data, weight):
    with pytest.raises(ValueError, match="all 1000 rows to train on have the weight 0 in column 'w'"):
        shortlist.Ranker.train(spec(weight="w", train={"validation": 0}), {**data, "w": [weight] * 1000})


def test_equal_weights_are_no_weights(data):
    plain = shortlist.Ranker.train(spec(), data, threads=1).predict(data)
    for weight in (1, 7.5, 1e-7, 1e30):
        weighted = shortlist.Ranker.train(spec(weight="w"), {**data, "w": [weight] * 1000}, threads=1)
        np.testing.assert_array_equal(weighted.predict(data), plain)


def test_a_callback_that_raises_ends_a_call_of_any_thread(data):
    told = []

    def fails(epoch):
        told.append(epoch)
        raise KeyError("enough")

    def train():
        with pytest.raises(KeyError, match="enough"):
            shortlist.Ranker.train(spec(), data, epochs=500, on_epoch=fails)

    run_together(train)
    assert len(told) == 1


def test_saved_and_pickled(rk, data, tmp_path):
    rk.save(tmp_path / "m.slr")
    for again in (shortlist.Ranker.open(tmp_path / "m.slr"), pickle.loads(pickle.dumps(rk))):
        np.testing.assert_array_equal(again.predict(data), rk.predict(data))
        assert again.spec == rk.spec and again.features == rk.features and again.report is None
    assert os.listdir(tmp_path) == ["m.slr"]


def test_check(rk, tmp_path):
    path = tmp_path / "m.slr"
    rk.save(path)
    told = shortlist.Ranker.check(path)
    assert (told.features, told.parameters) == (rk.info.features, rk.info.parameters)
    assert told.bytes_checked == path.stat().st_size and not told.checkpoint
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # behind the last section, where no model reads
    path.write_bytes(data)
    shortlist.Ranker.open(path)
    with pytest.raises(shortlist.Error, match="is not zero") as caught:
        shortlist.Ranker.check(path)
    assert caught.value.status == "SL_ECORRUPT" and caught.value.report.sections_checked == told.sections_checked
    with pytest.raises(FileNotFoundError):
        shortlist.Ranker.check(tmp_path / "none.slr")


def test_files_that_are_none(tmp_path, rk):
    with pytest.raises(FileNotFoundError):
        shortlist.Ranker.open(tmp_path / "none.slr")
    (tmp_path / "bad.slr").write_bytes(b"not a model" * 100)
    with pytest.raises(shortlist.Error):
        shortlist.Ranker.open(tmp_path / "bad.slr")
    with pytest.raises(ValueError, match="NUL"):
        shortlist.Ranker.open("a\0b")
    with pytest.raises(TypeError):
        shortlist.Ranker()


def test_damage_is_found(rk, data):
    """A changed byte is found, or lies between the sections and changes nothing."""
    whole, expected, found = rk.to_bytes(), rk.predict(data), 0
    for at in range(0, len(whole), 997):
        changed = bytearray(whole)
        changed[at] ^= 16
        try:
            again = shortlist.Ranker.from_bytes(bytes(changed))
        except shortlist.Error:
            found += 1
        else:
            np.testing.assert_array_equal(again.predict(data), expected)
    assert found > len(whole) / 997 / 4
    for size in range(0, len(whole), 997):
        with pytest.raises(shortlist.Error):
            shortlist.Ranker.from_bytes(whole[:size])


def test_features_and_sizes(rk):
    info, features = rk.info, {feature.name: feature for feature in rk.features}
    assert list(features) == [feature["name"] for feature in spec()["features"]]
    assert features["age"].form == "dense" and features["age"].width == 2 and features["age"].size == 0
    assert features["shop"].side == "item" and features["shop"].size >= 50 and features["shop"].deep_width == 3
    assert features["tags"].form == "bag" and features["tags"].combine == "mean"
    assert features["city_x_shop"].side == "pair" and features["city_x_shop"].deep_at is None
    assert features["face"].wide_at is None and features["face"].deep_width == DIM
    assert sum(f.width for f in features.values()) == info.dense_width == 3 + DIM
    assert sum(f.form == "id" for f in features.values()) == info.id_count == 4
    assert sum(f.deep_width for f in features.values()) == info.deep_inputs
    assert (info.layers, info.first_width, info.bag_count, info.outputs) == (3, 16, 1, 1)


def test_tables_in_codes(rk, data, tmp_path):
    assert [table.tensor for table in rk.embeddings] == [name for name in rk.tensors() if name.startswith("embedding.")]
    assert len(rk.embeddings) == rk.info.embeddings > 2
    assert all(table.type == "f32" and table.bytes == 4 * table.size * table.dim for table in rk.embeddings)
    types = [("i8", "i4", "f32")[i % 3] for i in range(len(rk.embeddings))]
    rk.save(tmp_path / "m.slr")
    shapes = [(table.size, table.dim) for table in rk.embeddings]
    (tmp_path / "c.slr").write_bytes(coded_model.code_tables((tmp_path / "m.slr").read_bytes(), shapes, types))
    coded = shortlist.Ranker.open(tmp_path / "c.slr")
    assert [table.type for table in coded.embeddings] == types
    assert coded.info.bytes < rk.info.bytes and coded.info.parameters == rk.info.parameters
    np.testing.assert_allclose(coded.predict(data), rk.predict(data), atol=0.05)
    # The weights by name are the decoded ones. A model with them gives the same scores.
    decoded = coded.tensors()
    for table in rk.embeddings:
        np.testing.assert_allclose(decoded[table.tensor], rk.tensors()[table.tensor], atol=0.05)
    np.testing.assert_allclose(rk.with_tensors(decoded).predict(data), coded.predict(data), atol=1e-5)
    first = coded.embeddings[0].tensor
    assert [t.type for t in coded.with_tensors({first: decoded[first]}).embeddings] == ["f32", *types[1:]]
    assert {t.type for t in coded.with_tensors(decoded).embeddings} == {"f32"}
    again = shortlist.Ranker.from_bytes(coded.to_bytes())
    assert again.embeddings == coded.embeddings
    np.testing.assert_array_equal(again.predict(data), coded.predict(data))


def test_tensors_are_views(data):
    rk = shortlist.Ranker.create(spec(), data)
    tensors = rk.tensors()
    assert tensors["dense.0.weight"].shape == (rk.info.deep_inputs, 16) and tensors["bias"].shape == (1, 1)
    assert tensors["wide"].shape == (rk.info.wide_size, 1) and "embedding.city" in tensors
    assert sum(array.size for array in tensors.values()) == rk.info.parameters
    assert tensors["dense.0.weight"].ctypes.data == rk.tensors()["dense.0.weight"].ctypes.data
    with pytest.raises(ValueError, match="read-only"):
        tensors["bias"][0] = 1
    kept, copy = tensors["dense.0.weight"], tensors["dense.0.weight"].copy()
    del tensors, rk
    np.testing.assert_array_equal(kept, copy)


def test_other_tensors(rk, data):
    changed = rk.with_tensors({"bias": [[5.0]], "wide": np.asfortranarray(np.zeros((rk.info.wide_size, 1)))})
    assert changed.tensors()["bias"][0, 0] == 5 and changed.predict(data).mean() > rk.predict(data).mean()
    assert changed.with_tensors({"bias": [5.0]}).tensors()["bias"][0, 0] == 5
    back = changed.with_tensors(rk.tensors())
    np.testing.assert_array_equal(back.predict(data), rk.predict(data))
    with pytest.raises(KeyError, match="weights"):
        rk.with_tensors({"weights": np.zeros((1, 1))})
    with pytest.raises(ValueError, match="bias"):
        rk.with_tensors({"bias": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="bias"):
        rk.with_tensors({"bias": [[np.nan]]})
    with pytest.raises(ValueError, match="shape"):
        rk.with_tensors({"bias": np.zeros((1, 1, 1))})


def test_encoded_rows(rk, data):
    encoded = rk.encode(data)
    assert encoded.dense.shape == (1000, 3 + DIM) and encoded.ids.shape == (1000, 4)
    lengths = np.diff(encoded.bag_start.astype(np.int64))
    np.testing.assert_array_equal(lengths, [len(tags) for tags in data["tags"]])
    assert len(encoded.bag_ids) == lengths.sum()
    np.testing.assert_allclose(rk.predict_encoded(encoded), rk.predict(data), atol=1e-6)
    with pytest.raises(ValueError):
        rk.predict_encoded(encoded._replace(ids=encoded.ids + np.uint32(10_000_000)))
    with pytest.raises(ValueError, match="shapes"):
        rk.predict_encoded(encoded._replace(dense=encoded.dense[:, :2]))
    with pytest.raises(ValueError):
        rk.predict_encoded(encoded._replace(bag_start=encoded.bag_start[:-1]))


def vector_spec():
    vectors = [{"name": "face", "type": "vector", "dim": DIM, "source": "index", "side": "item"}]
    return spec(features=[*spec()["features"][:-1], *vectors])


def test_vectors_looked_up(data):
    faces = data["face"]
    asked = {**data, "face": np.arange(1000)}
    calls = []

    def lookup(feature, label):
        calls.append(feature)
        return faces[label].astype(np.float64)

    by_id = shortlist.Ranker.train(vector_spec(), asked, threads=1, lookup=lookup)
    by_value = shortlist.Ranker.train(vector_spec(), data, threads=1)
    assert set(calls) == {"face"} and len(calls) >= 1000
    scores = by_value.predict(data)
    np.testing.assert_array_equal(by_id.predict(asked, lookup=lookup), scores)
    np.testing.assert_allclose(by_id.predict(asked, 2, lookup=lookup), scores, atol=1e-6)
    np.testing.assert_array_equal(by_id.encode(asked, lookup=lookup).dense, by_value.encode(data).dense)
    assert by_id.evaluate(asked, lookup=lookup).auc == by_value.evaluate(data).auc
    index = shortlist.Index(dim=DIM, metric="l2", codes="f32")
    index.add(faces)
    np.testing.assert_array_equal(by_id.predict(asked, lookup=index), scores)


def test_what_a_lookup_raises_is_raised(data):
    asked = {**data, "face": np.arange(1000)}
    rk = shortlist.Ranker.train(vector_spec(), data)
    wrongs = ((lambda f, i: {}[i], KeyError), (lambda f, i: [1.0], ValueError), (lambda f, i: "x", ValueError))
    for wrong, kind in wrongs:
        with pytest.raises(kind):
            rk.predict(asked, lookup=wrong)
        with pytest.raises(kind):
            shortlist.Ranker.train(vector_spec(), asked, lookup=wrong)
    with pytest.raises(TypeError, match="lookup"):
        rk.predict(asked, lookup=3)


def test_what_callbacks_raise_ends_a_training(data):
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    with pytest.raises(Stop):
        shortlist.Ranker.train(spec(), data, progress=stop)
    told = []

    def first(epoch):
        told.append(epoch)
        raise Stop

    with pytest.raises(Stop):
        shortlist.Ranker.train(spec(), data, epochs=500, on_epoch=first)
    assert len(told) == 1
    with pytest.raises(TypeError, match="on_epoch"):
        shortlist.Ranker.train(spec(), data, on_epoch=3)
    with pytest.raises(shortlist.Error) as caught:
        shortlist.Ranker.train(spec(), data, progress=lambda done, total: True)
    assert caught.value.status == "SL_ECANCELED"


def test_ctrl_c_ends_a_training(data):
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    pressed = threading.Event()

    def press():
        pressed.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    long = spec(train={"epochs": 100_000, "patience": 0})
    try:
        with pytest.raises(KeyboardInterrupt):
            shortlist.Ranker.train(long, data, on_epoch=lambda epoch: pressed.set())
            time.sleep(60)
    finally:
        pressed.set()
        thread.join()
        signal.signal(signal.SIGINT, old)


def test_resumed_training_gives_the_same_numbers(data, rk, tmp_path):
    class Stop(Exception):
        pass

    def stop(epoch):
        raise Stop

    path = tmp_path / "state"
    with pytest.raises(Stop):
        shortlist.Ranker.train(spec(), data, threads=1, checkpoint=path, on_epoch=stop)
    assert path.exists()
    resumed = shortlist.Ranker.train(spec(), data, threads=1, checkpoint=path, resume=True)
    np.testing.assert_array_equal(resumed.predict(data), rk.predict(data))
    path.write_bytes(b"x" * 1000)
    with pytest.raises(shortlist.Error):
        shortlist.Ranker.train(spec(), data, checkpoint=path, resume=True)


def test_specs_that_cannot_be(data):
    for wrong, message in (
        ({}, "label"),
        (spec(colour=1), "colour"),
        (spec(deep={"hidden": [-1]}), "hidden"),
        ("{", "."),
        ({"label": {"column": {1, 2}}}, "spec"),
    ):
        with pytest.raises(ValueError, match=message):
            shortlist.Ranker.train(wrong, data)
    with pytest.raises(FileNotFoundError):
        shortlist.Ranker.train("nowhere.json", data)
    with pytest.raises(KeyError, match="click"):
        shortlist.Ranker.train(spec(), {name: values for name, values in data.items() if name != "click"})
    with pytest.raises(ValueError, match="threads"):
        shortlist.Ranker.train(spec(), data, threads=-1)
    with pytest.raises(ValueError, match="click"):
        shortlist.Ranker.train(spec(), {**data, "click": ["maybe"] * 1000})


def test_python_runs_while_a_ranker_works(counter, data, tmp_path):
    rk = shortlist.Ranker.train(spec(), data, threads=1)
    table = shortlist._columns.table(columns(10_000))
    scores = np.empty((10_000, 1), np.float32)
    core, text, name = rk._core, rk.spec_text, os.fsencode(tmp_path / "m.slr")
    options = {"threads": 1, "epochs": 1, "seed": 1, "checkpoint": None, "checkpoint_steps": 0, "resume": False,
               "init": None, "teacher": None, "temperature": 2.0, "soft": 0.7, "rate_scale": 1.0, "precision": 0, "loss_scale": 0.0,
               "layers": 0, "ranges": 0, "keep": []}
    cuts = {"units": 0.5, "multiply_adds": 0.0, "weights": 0.0, "weights_end": 0.5, "criterion": 0, "per_layer": False,
            "multiple": 1, "rows": 0}
    calls = {
        "train": lambda: shortlist._core.Ranker.train(text, table, None, options, None, None, None),
        "prune": lambda: core.prune(table, None, cuts, options, None, None, None),
        "create": lambda: shortlist._core.Ranker.create(text, table, 1, None),
        "predict": lambda: core.predict(table, 1, None, scores),
        "encode": lambda: core.encode(table, None),
        "evaluate": lambda: core.evaluate(table, None, 10, 1, None, None),
        "save": lambda: core.save(name, None),
    }
    assert not [what for what, call in calls.items() if not moves(counter, call)]


def test_threads_share_a_ranker(rk, data):
    expected = rk.predict(data)

    def ask():
        for _ in range(10):
            np.testing.assert_array_equal(rk.predict(data), expected)

    run_together(*[ask] * 4)


def test_the_core_refuses_buffers_that_do_not_fit(rk, data):
    table = shortlist._columns.table(data)
    for wrong in (np.empty(999, np.float32), np.empty(1000, np.float64), np.empty(2000, np.float32)[::2]):
        with pytest.raises((ValueError, BufferError)):
            rk._core.predict(table, 1, None, wrong)
    with pytest.raises((TypeError, RuntimeError)):
        rk._core.predict(None, 1, None, np.empty(1000, np.float32))


@pytest.fixture(scope="module")
def large():
    return shortlist.Ranker.train(spec(deep={"hidden": [32, 16]}), columns(1500), threads=1, epochs=4)


def test_a_student_needs_no_labels(large):
    data = columns(1500, seed=2)
    rows = {name: column for name, column in data.items() if name != "click"}
    student = shortlist.Ranker.train(
        spec(deep={"hidden": [8]}), rows, threads=1, epochs=8, teacher=large, temperature=3, soft=1
    )
    assert np.isnan(student.report.valid_auc)
    assert student.info.multiply_adds < large.info.multiply_adds / 2
    ours, theirs = student.predict(rows), large.predict(rows)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.8
    with pytest.raises(KeyError, match="click"):
        shortlist.Ranker.train(spec(), rows, teacher=large, soft=0.5)
    with pytest.raises(ValueError, match="temperature"):
        shortlist.Ranker.train(spec(), data, teacher=large, temperature=0)
    with pytest.raises(TypeError, match="teacher must be a Ranker"):
        shortlist.Ranker.train(spec(), data, teacher="large")


def test_training_begins_with_a_model(large):
    tuned = shortlist.Ranker.train(None, columns(300, seed=3), threads=1, epochs=1, init=large, rate_scale=1e-7)
    assert tuned.spec == large.spec
    for name, tensor in large.tensors().items():
        if name.startswith("dense"):
            np.testing.assert_allclose(tuned.tensors()[name], tensor, atol=1e-5)
    with pytest.raises(ValueError, match="other layers"):
        shortlist.Ranker.train(spec(deep={"hidden": [9]}), columns(), init=large)
    with pytest.raises(TypeError, match="spec is None"):
        shortlist.Ranker.train(None, columns())


def test_units_are_cut(large):
    told = []
    small = large.prune(
        columns(1500), multiply_adds=0.5, multiple=4, threads=1, epochs=3, teacher=large, rate_scale=0.3,
        on_epoch=told.append,
    )
    report = small.pruning
    assert report.hidden_before == (32, 16) and all(width % 4 == 0 for width in report.hidden)
    assert report.multiply_adds == small.info.multiply_adds <= large.info.multiply_adds / 2
    assert small.spec["deep"]["hidden"] == list(report.hidden)
    assert len(told) == report.epochs == 3 and report.rows + report.valid_rows == 1500
    assert large.pruning is None and small.report is None
    untrained = large.prune(units=0.25, criterion="norm")
    assert sum(untrained.pruning.hidden) == 36 and untrained.pruning.rows == 0
    for wrong in ({}, {"units": 1}, {"units": 0.5, "multiply_adds": 0.5}, {"units": 0.5, "criterion": "best"}):
        with pytest.raises(ValueError):
            large.prune(columns(), **wrong)


def test_weights_are_cut(large):
    sparse = large.prune(columns(1500), weights=0.8, threads=1, epochs=2)
    assert sparse.info.dense_zeros == int(0.8 * sparse.info.multiply_adds) == sparse.pruning.dense_zeros
    assert sparse.info.multiply_adds == large.info.multiply_adds
