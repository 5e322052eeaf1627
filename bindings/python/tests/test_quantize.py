"""Quantised models: what is found within a bound, what is refused, and that files and pickles keep the layers."""

import pickle
import typing

import numpy as np
import pytest

import shortlist
from shortlist import _core, _ranker

N = 3000


def clicks(n=N, seed=1):
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(2, n)).astype(np.float32)
    kind = random.integers(0, 8, n)
    score = 1.5 * x - y * x + np.sin(kind)
    return {"x": x, "y": y, "kind": kind, "user": random.integers(0, 50, n),
            "click": (random.random(n) < 1 / (1 + np.exp(-score))).astype(np.float32)}


SPEC = {
    "label": {"column": "click"},
    "features": [{"name": "x", "type": "numeric"}, {"name": "y", "type": "numeric"},
                 {"name": "kind", "type": "categorical", "dim": 4}],
    "deep": {"hidden": [24, 16]},
    "wide": {},
}


def test_calibrations_are_those_of_the_library():
    assert sorted(typing.get_args(_ranker.Calibration)) == sorted(_core.CALIBRATIONS)


@pytest.fixture(scope="module")
def rows():
    return clicks()


@pytest.fixture(scope="module")
def ranker(rows):
    return shortlist.Ranker.create(SPEC, rows)


def test_the_fastest_within_the_bound(ranker, rows):
    made, report = ranker.quantize(rows, clicks(seed=2), max_drop=0.01, threads=2)
    assert report.within and report.proved and report.cost < 0.6
    assert report.rows == N and report.drop <= 0.01
    assert report.tables in {trial.tables for trial in report.trials} == {"i4"}
    assert report.base_value == pytest.approx(ranker.evaluate(clicks(seed=2)).auc, abs=1e-6)
    assert report.value == pytest.approx(made.evaluate(clicks(seed=2)).auc, abs=1e-3)
    assert all(layer.precision == "int8" and len(layer.weight_scales) == layer.outputs for layer in made.layers)
    assert all(layer.precision == "f32" and layer.weight_scales is None for layer in ranker.layers)
    assert [trial.cost for trial in report.trials] == sorted(trial.cost for trial in report.trials)
    assert report.trials[0].calibrations[0] in ("minmax", "quantile", "entropy", "mse")
    assert np.abs(made.predict(rows) - ranker.predict(rows)).mean() < 0.02


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("strategy", ["exhaustive", "accuracy-aware", "basic", "mse", "bayesian"])
def test_a_layer_whose_inputs_are_all_0(layer, strategy, ranker, rows):
    """bf16 and dynamic INT8 need no range of the rows. Static INT8 asks for other rows."""
    tensors = {name: array.copy() for name, array in ranker.tensors().items()}
    tensors[f"dense.{layer}.bias"][:] = -1e6
    dead = ranker.with_tensors(tensors)
    how = {"max_drop": 1, "strategy": strategy, "trials": 3, "tables": "f32", "threads": 1}
    for mode, precision in {"bf16": "bf16", "dynamic": "int8-dynamic"}.items():
        made, report = dead.quantize(rows, mode=mode, **how)
        assert report.within and {found.precision for found in made.layers} <= {precision, "f32"}
        np.testing.assert_allclose(made.predict(rows), dead.predict(rows), atol=1e-2)
    with pytest.raises(ValueError, match=f"dense.{layer + 1} are 0 on the rows to calibrate on; give other rows"):
        dead.quantize(rows, mode="static", **how)


@pytest.mark.parametrize("name, error", [(3, TypeError), (b"user", TypeError), ("\ud800", ValueError),
                                         ("us\0er", ValueError)])
def test_names_are_texts(ranker, rows, name, error):
    """A group or a name that is no text raises TypeError. A text that no column can have raises ValueError."""
    with pytest.raises(error):
        ranker.quantize(rows, metric="ndcg", group=name, max_drop=0.5, trials=1)
    with pytest.raises(error):
        ranker.evaluate(rows, group=name)
    with pytest.raises(error):
        ranker.quantize(rows, keep=[name], max_drop=0.5, trials=1)


def test_files_and_pickles(ranker, rows, tmp_path):
    made, _ = ranker.quantize(rows, max_drop=0.5, trials=1)
    made.save(tmp_path / "m.slr")
    scores = made.predict(rows)
    for other in (shortlist.Ranker.open(tmp_path / "m.slr"), pickle.loads(pickle.dumps(made))):
        assert other.layers == made.layers
        assert (other.predict(rows) == scores).all()


@pytest.mark.parametrize("strategy", ["accuracy-aware", "basic", "mse"])
def test_strategies_and_kept_layers(ranker, rows, strategy):
    made, report = ranker.quantize(rows, strategy=strategy, keep=["dense.1"], max_drop=0.5, mode="static")
    assert report.within and not report.proved
    assert [layer.precision for layer in made.layers] == ["int8", "f32", "int8"]
    assert all(trial.precisions[1] == "f32" for trial in report.trials)


def test_the_bayesian_strategy_is_seeded(ranker, rows):
    found = [ranker.quantize(rows, strategy="bayesian", max_drop=1e-6, trials=8, seed=seed)[1] for seed in (1, 1, 2)]
    assert 1 <= len(found[0].trials) <= 8
    assert found[0].trials == found[1].trials
    assert all(report.within == (report.drop <= 1e-6) and not report.proved for report in found)


def test_dynamic_and_groups(ranker, rows):
    made, report = ranker.quantize(rows, mode="dynamic", metric="ndcg", group="user", k=5, max_drop=0.5, relative=True)
    assert report.within
    assert all(layer.precision in ("f32", "int8-dynamic") for layer in made.layers)


def test_bf16(ranker, rows):
    made, report = ranker.quantize(rows, mode="bf16", max_drop=0.001)
    assert report.within and report.proved and 0.5 < report.cost < 0.65
    assert [layer.precision for layer in made.layers] == ["bf16"] * 3
    assert all(layer.weight_scales is None for layer in made.layers)
    assert made.layers[1].bytes == 24 * 16 * 2 + 16 * 4
    assert np.abs(made.predict(rows) - ranker.predict(rows)).max() < 0.02
    again = pickle.loads(pickle.dumps(made))
    assert again.layers == made.layers and (again.predict(rows) == made.predict(rows)).all()


def test_tables_in_codes(ranker, rows):
    made, report = ranker.quantize(rows, tables="i4", max_drop=0.5, trials=1)
    assert [table.type for table in made.embeddings] == ["i4"]
    assert report.base_value == pytest.approx(ranker.evaluate(rows).auc, abs=1e-6)


def test_cancelling(ranker, rows):
    with pytest.raises(shortlist.Error) as caught:
        ranker.quantize(rows, max_drop=0, progress=lambda done, total: True)
    assert caught.value.status == "SL_ECANCELED"


def test_what_is_refused(ranker, rows):
    made, _ = ranker.quantize(rows, max_drop=0.5, trials=1)
    with pytest.raises(ValueError, match="quantised already"):
        made.quantize(rows)
    with pytest.raises(KeyError, match="dense.0 to dense.2"):
        ranker.quantize(rows, keep=["dense.3"])
    with pytest.raises(TypeError, match="keep"):
        ranker.quantize(rows, keep="dense.0")
    for wrong in ({"metric": "ndcg"}, {"mode": "trained"}, {"strategy": "random"}, {"calibration": "kl"},
                  {"max_drop": -1}, {"quantile": 1.0}, {"rows": 0}, {"ranges": "known", "mode": "qat"}, {"epochs": 3},
                  {"soft": 0}, {"mode": "qat", "strategy": "basic"}, {"mode": "qat", "symmetric": True}):
        with pytest.raises(ValueError):
            ranker.quantize(rows, **wrong)
    with pytest.raises(KeyError):
        ranker.quantize(rows, metric="ndcg", group="nothing")


def test_layers_train_in_int8(rows, tmp_path):
    held_out = clicks(seed=2)
    exact = shortlist.Ranker.train(SPEC, rows, epochs=3, seed=1)
    assert exact.report.layers == "f32" and exact.report.ranges is None
    for ranges in ("observed", "learned"):
        made = shortlist.Ranker.train(SPEC, rows, held_out, epochs=3, seed=1, layers="int8", ranges=ranges,
                                      keep=["dense.1"])
        assert (made.report.layers, made.report.ranges) == ("int8", ranges)
        assert [layer.precision for layer in made.layers] == ["int8", "f32", "int8"]
        assert made.evaluate(held_out).auc == pytest.approx(made.report.valid_auc, abs=1e-5)
        assert made.report.valid_auc > exact.evaluate(held_out).auc - 0.01
    made.save(tmp_path / "m.slr")
    assert (shortlist.Ranker.open(tmp_path / "m.slr").predict(rows) == made.predict(rows)).all()
    with pytest.raises(ValueError, match="ranges are of layers"):
        shortlist.Ranker.train(SPEC, rows, ranges="learned")
    with pytest.raises(ValueError, match="layers"):
        shortlist.Ranker.train(SPEC, rows, layers="int4")
    with pytest.raises(KeyError, match="dense.7"):
        shortlist.Ranker.train(SPEC, rows, layers="int8", keep=["dense.7"])


@pytest.mark.parametrize("ranges", ["observed", "learned"])
def test_quantised_by_training(rows, ranges):
    held_out, told = clicks(seed=2), []
    exact = shortlist.Ranker.train(SPEC, rows, epochs=3, seed=1)
    made, report = exact.quantize(rows, held_out, mode="qat", ranges=ranges, epochs=1, max_drop=0.01,
                                  progress=lambda done, total: told.append((done, total)))
    assert report.within and report.rows == N and report.cost < 0.6 and len(report.trials) == 1
    assert report.base_value == pytest.approx(exact.evaluate(held_out).auc, abs=1e-9)
    assert report.value == pytest.approx(made.evaluate(held_out).auc, abs=1e-9)
    assert report.trials[0].calibrations == (None, None, None)
    assert all(layer.precision == "int8" for layer in made.layers)
    assert told[-1][0] == told[-1][1] > 0
    with pytest.raises(ValueError, match="quantised"):
        made.quantize(rows, mode="qat")
