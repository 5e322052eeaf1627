"""The ranker: a wide & deep model, trained and asked."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Literal, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import Ranker as _Core
from ._arrays import Scores, choice, count
from ._columns import Data, Spec, source, spec_text
from ._errors import checked
from ._index import Index
from ._paths import StrPath, missing_file
from ._progress import Progress, shown
from ._reports import RankerCheckReport

_MEASURES = {"default": 0, "auc": 1, "logloss": 2, "ndcg": 3, "rmse": 4}
_STRATEGIES = {"exhaustive": 0, "accuracy-aware": 1, "basic": 2, "mse": 3, "bayesian": 4}
_TABLES = {"f32": 0, "i8": 1, "i4": 2, "auto": 3}

_MODES = ("static", "dynamic", "bf16")

Measure = Literal["default", "auc", "logloss", "ndcg", "rmse"]
Mode = Literal["auto", "static", "dynamic", "bf16", "qat"]
Strategy = Literal["exhaustive", "accuracy-aware", "basic", "mse", "bayesian"]
Tables = Literal["f32", "i8", "i4", "auto"]

Lookup = Union[Callable[[str, int], npt.ArrayLike], Index]
"""Gives the vector, (dim,), of an id for a feature: a function of (feature, id), or an Index that has the ids."""


Calibration = Literal["minmax", "quantile", "entropy", "mse"]
"""How the range of a layer's inputs in INT8 is found."""

Precision = Literal["f32", "bf16", "fp16", "auto"]
"""Numbers that the deep part's products multiply in training."""

# As sl_train_precision has them; 0 is none.
_PRECISIONS = ("f32", "bf16", "fp16", "auto")


def _precision_number(precision: Precision | None) -> int:
    if precision is None:
        return 0
    if precision not in _PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(_PRECISIONS)}, or None, not {precision!r}")
    return 1 + _PRECISIONS.index(precision)


Ranges = Literal["observed", "learned"]
"""How layers in INT8 that train get the ranges of their inputs and the scales of their weights."""

_RANGES = {"observed": 0, "learned": 1}
_LAYERS = {"f32": 0, "int8": 1}


def _names(keep: Sequence[str]) -> list[str]:
    if isinstance(keep, str):
        raise TypeError("keep must be a list of layers' names, not one text")
    return list(keep)


@dataclass(frozen=True)
class Epoch:
    """Results of one epoch of a training.

    epoch: number of the epoch, from 1.
    train_loss: mean over the epoch's rows, as they were met.
    valid_loss: NaN without validation rows.
    valid_auc: under logistic loss, else NaN.
    seconds: time of training alone.
    best: whether the epoch is the best so far.
    """

    epoch: int
    train_loss: float
    valid_loss: float
    valid_auc: float
    seconds: float
    rows: int
    best: bool


@dataclass(frozen=True)
class TrainReport:
    """Results of a training.

    train_loss, valid_loss, valid_auc: of the best epoch.
    read_s: seconds of fitting and encoding.
    epoch_s, rows_per_s: means over the epochs of this call.
    wide_nonzero: weights of the wide part that L1 left standing.
    precision: precision that the deep part's products had; "f32" without a deep part.
    emulated: whether the products were of rounded numbers, in f32, because the machine lacks the instructions.
    loss_scale: under fp16, the scale at the end; else None.
    skipped_steps: under fp16, steps whose gradients overflowed, those before a resumption too.
    layers, ranges: the dense layers' numbers, and how those of INT8 were ranged; None for "f32".
    """

    rows: int
    valid_rows: int
    epochs: int
    best_epoch: int
    train_loss: float
    valid_loss: float
    valid_auc: float
    read_s: float
    epoch_s: float
    rows_per_s: float
    wide_nonzero: int
    precision: Literal["f32", "bf16", "fp16"]
    emulated: bool
    loss_scale: float | None
    skipped_steps: int
    layers: Literal["f32", "int8"]
    ranges: Ranges | None


@dataclass(frozen=True)
class PruneReport:
    """Results of ``Ranker.prune``.

    hidden_before, hidden: widths of the hidden layers.
    parameters, bytes, multiply_adds: sizes of the smaller model, and ``_before`` of the pruned one. Multiply-adds are of
    the dense layers, a row; weights that are 0 count.
    dense_weights, dense_zeros: weights of the dense layers, and those that are 0.
    rows, valid_rows, epochs, best_epoch: of the training that follows; 0 without one.
    valid_loss, valid_auc: at last; ``_before``: of the pruned model; ``_cut``: with units cut and before training. NaN
    without validation rows.
    importance_s, read_s, epoch_s: seconds of measuring units, of reading rows, and of an epoch.
    """

    hidden_before: tuple[int, ...]
    hidden: tuple[int, ...]
    parameters_before: int
    parameters: int
    bytes_before: int
    bytes: int
    multiply_adds_before: int
    multiply_adds: int
    dense_weights: int
    dense_zeros: int
    rows: int
    valid_rows: int
    epochs: int
    best_epoch: int
    valid_loss_before: float
    valid_loss_cut: float
    valid_loss: float
    valid_auc_before: float
    valid_auc_cut: float
    valid_auc: float
    importance_s: float
    read_s: float
    epoch_s: float


@dataclass(frozen=True)
class RankerInfo:
    """A model's sizes.

    outputs: scores a row, 1 or the number of classes.
    features: features of the spec.
    dense_width, id_count, bag_count: floats, ids and bags of ids of a row.
    deep_inputs: width of the first layer's input; 0 without a deep part.
    layers: dense layers, the last included.
    first_width: width of the first layer's output.
    wide_size: weights of the wide part; each is one number for each output.
    parameters: all weights.
    bytes: bytes in memory.
    uses_onednn: False if plain C predicts.
    embeddings: embedding tables.
    multiply_adds: of the dense layers, a row.
    dense_zeros: weights of the dense layers that are 0.
    """

    loss: Literal["logistic", "multiclass", "squared"]
    outputs: int
    features: int
    dense_width: int
    id_count: int
    bag_count: int
    deep_inputs: int
    layers: int
    first_width: int
    wide_size: int
    parameters: int
    bytes: int
    uses_onednn: bool
    embeddings: int
    multiply_adds: int
    dense_zeros: int


@dataclass(frozen=True)
class Feature:
    """A feature as it enters the model.

    form: floats, an id, or a bag of ids.
    side: side that the feature belongs to.
    at: first column of the dense matrix, column of the id matrix, or number of the bag.
    width: columns of a dense feature.
    size: number of ids of another feature; ids are below it.
    wide_at: first of the feature's weights in the wide part; None if the feature is not in the wide part.
    deep_at: first of the feature's inputs to the deep part; None if the feature is not in the deep part.
    deep_width: number of the feature's inputs to the deep part.
    tensor: name of the feature's embedding.
    combine: how a bag's embeddings are combined.
    """

    name: str
    form: Literal["dense", "id", "bag"]
    side: Literal["user", "item", "pair"]
    at: int
    width: int
    size: int
    wide_at: int | None
    deep_at: int | None
    deep_width: int
    tensor: str | None
    combine: Literal["sum", "mean", "max"] | None


@dataclass(frozen=True)
class Embedding:
    """An embedding table of a model.

    tensor: name of its weights in ``tensors()``.
    type: float32, or a row in codes of 8 or 4 bits with a scale and an offset.
    size, dim: rows, and elements of a row.
    bytes: bytes in memory and in a file.
    """

    tensor: str
    type: Literal["f32", "i8", "i4"]
    size: int
    dim: int
    bytes: int


@dataclass(frozen=True)
class Layer:
    """A dense layer.

    scale, zero: an input x has the code zero + x / scale, from 0 to 255; 0 if the precision is not "int8".
    low, high: what codes 0 and 255 stand for.
    weight_scales: one an output; None in "f32" and "bf16".
    bytes: bytes in a file.
    """

    name: str
    inputs: int
    outputs: int
    precision: Literal["f32", "int8", "int8-dynamic", "bf16"]
    scale: float
    zero: int
    low: float
    high: float
    weight_scales: tuple[float, ...] | None
    bytes: int


_LAYER_PRECISIONS = ("f32", "int8", "int8-dynamic", "bf16")


class GivenLayer(NamedTuple):
    """A dense layer in numbers that another tool found. codes: (in, out) int8, weight_scales: (out,), of "int8"."""

    precision: Literal["f32", "int8", "bf16"]
    scale: float = 0.0
    zero: int = 0
    codes: npt.NDArray[np.int8] | None = None
    weight_scales: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Trial:
    """One choice of precisions, as it was judged.

    precisions, calibrations: one per layer; the calibration is None if the layer is not "int8".
    value, drop: the metric, and how much worse than float32 it is.
    cost: modelled time of the dense layers over that of float32.
    within: whether the drop is within the bound.
    error: root mean squared difference of the logits from those of float32; NaN for layers that were trained.
    tables: type of the embedding tables.
    """

    precisions: tuple[str, ...]
    calibrations: tuple[str | None, ...]
    value: float
    drop: float
    cost: float
    within: bool
    error: float
    tables: str


@dataclass(frozen=True)
class QuantizeReport:
    """Result of ``Ranker.quantize``.

    rows: rows that the metric was measured on.
    base_value, value: the metric of float32, and of the model made.
    drop_error: standard error of the drop, by the grouped jackknife over the rows.
    cost: modelled time of the dense layers over that of float32.
    within: whether the model is within the bound.
    proved: whether every choice of a lower cost was judged, and none is within the bound.
    tables: type of the embedding tables.
    blame, blame_drop: if no choice is within the bound, the layer whose codes alone cost most, and what they cost.
    """

    rows: int
    base_value: float
    value: float
    drop: float
    drop_error: float
    cost: float
    within: bool
    proved: bool
    blame: int | None
    blame_drop: float
    seconds: float
    tables: str
    trials: tuple[Trial, ...]


class Quantized(NamedTuple):
    """A quantised model, and how it was found."""

    ranker: Ranker
    report: QuantizeReport


@dataclass(frozen=True)
class Metrics:
    """Quality of scores; metrics that do not apply are NaN.

    logloss: mean negative log likelihood.
    auc: ties count half.
    accuracy: at 0.5, or of the likeliest class.
    rmse: of the probability or value.
    base_rate: mean label.
    calibration: mean score / mean label.
    normalized_entropy: logloss / entropy of the base rate.
    group_auc: mean over the groups that have both labels.
    ndcg: mean over the groups that have a positive label, at ndcg_k. The gain is 2^label - 1, or the label where
        ndcg_linear.
    decile_rows, decile_score, decile_label: (10,) each. Rows stand in order of their scores, in ten equal parts. The
        values are the rows, mean score and mean label of each part.
    """

    rows: int
    logloss: float
    auc: float
    accuracy: float
    rmse: float
    base_rate: float
    calibration: float
    normalized_entropy: float
    group_auc: float
    ndcg: float
    ndcg_k: int
    ndcg_linear: bool
    groups: int
    decile_rows: npt.NDArray[np.int64]
    decile_score: npt.NDArray[np.float64]
    decile_label: npt.NDArray[np.float64]


class Encoded(NamedTuple):
    """Rows as a model sees them: dense (n, dense_width) float32, ids (n, id_count) uint32, and bags of ids.

    Bag b of row r is bag_ids[bag_start[r * bag_count + b] : bag_start[r * bag_count + b + 1]], both uint32.
    """

    dense: npt.NDArray[np.float32]
    ids: npt.NDArray[np.uint32]
    bag_start: npt.NDArray[np.uint32]
    bag_ids: npt.NDArray[np.uint32]


def _train_options(
    threads: int,
    epochs: int | None,
    seed: int | None,
    checkpoint: StrPath | None,
    checkpoint_steps: int,
    resume: bool,
    precision: Precision | None = None,
    loss_scale: float | None = None,
    layers: str = "f32",
    ranges: str | None = None,
    keep: Sequence[str] = (),
) -> dict[str, Any]:
    if layers != "int8" and ranges is not None:
        raise ValueError('ranges are of layers="int8"')
    return {
        "threads": count("threads", threads),
        "epochs": 0 if epochs is None else count("epochs", epochs),
        "seed": 0 if seed is None else count("seed", seed, 2**64),
        "checkpoint": None if checkpoint is None else os.fsencode(checkpoint),
        "checkpoint_steps": count("checkpoint_steps", checkpoint_steps),
        "resume": bool(resume),
        "precision": _precision_number(precision),
        "loss_scale": 0.0 if loss_scale is None else float(loss_scale),
        "layers": choice("layers", layers, _LAYERS),
        "ranges": choice("ranges", "observed" if ranges is None else ranges, _RANGES),
        "keep": _names(keep),
    }


def _teaching(
    init: Ranker | None, teacher: Ranker | None, temperature: float, soft: float, rate_scale: float
) -> dict[str, Any]:
    for name, model in (("init", init), ("teacher", teacher)):
        if model is not None and not isinstance(model, Ranker):
            raise TypeError(f"{name} must be a Ranker")
    return {
        "init": None if init is None else init._core,
        "teacher": None if teacher is None else teacher._core,
        "temperature": float(temperature),
        "soft": float(soft),
        "rate_scale": float(rate_scale),
    }


def _text_of(spec: Spec | None, init: Ranker | None) -> str:
    """The text of the spec, or that of the model to begin with."""
    if spec is not None:
        return spec_text(spec)
    if init is not None:
        return init.spec_text
    raise TypeError("spec is None; give a spec, or a model to begin with as init")


def _check_mode(mode: str, of_training: tuple[Any, ...], searched: tuple[Any, ...]) -> None:
    """Refuses a mode that is none, and arguments of ``quantize`` that are of other modes."""
    if mode not in ("auto", "qat", *_MODES):
        raise ValueError(f"mode is {mode!r}; it must be one of auto, {', '.join(_MODES)}, qat")
    if mode != "qat" and of_training != (2, 0.03, 0.5, "observed"):
        raise ValueError("epochs, rate_scale, soft and ranges are of mode='qat'")
    if mode == "qat" and searched != ("exhaustive", "mse", 1e-4, False, True, 0, 0):
        raise ValueError(
            "mode='qat' trains one choice, and searches for none; leave out strategy, calibration, quantile, "
            "symmetric, bias_correction, trials and timeout"
        )


def _bound(max_drop: float, relative: bool, metric: str, group: str | None, k: int, mode: str) -> dict[str, Any]:
    """Options of ``quantize``: how much worse a model may be, and the precisions that its layers may not have."""
    return {
        "max_drop": float(max_drop),
        "relative": bool(relative),
        "measure": choice("metric", metric, _MEASURES),
        "group": group,
        "k": count("k", k),
        **{f"leave_{name}": mode not in ("auto", "qat", name) for name in _MODES},
    }


def _calibrating(
    calibration: str,
    quantile: float,
    symmetric: bool,
    bias_correction: bool,
    tables: str,
    rows: int,
    seed: int,
    keep: Sequence[str],
) -> dict[str, Any]:
    """Options of ``quantize``: how layers and tables are put into codes."""
    return {
        "calibration": choice("calibration", calibration, _core.CALIBRATIONS),
        "quantile": float(quantile),
        "symmetric": bool(symmetric),
        "bias_correction": bool(bias_correction),
        "tables": choice("tables", tables, _TABLES),
        "rows": count("rows", rows),
        "seed": count("seed", seed, 2**64),
        "keep": _names(keep),
    }


def _searching(strategy: str, trials: int, timeout: float, threads: int) -> dict[str, Any]:
    """Options of ``quantize``: the order of trials, and how many."""
    return {
        "strategy": choice("strategy", strategy, _STRATEGIES),
        "trials": count("trials", trials),
        "timeout": float(timeout),
        "threads": count("threads", threads),
    }


def _own_training(
    model: Ranker, threads: int, epochs: int, seed: int, ranges: str, soft: float, rate_scale: float
) -> dict[str, Any]:
    """Options of ``quantize``: training a model on in INT8, beside its own scores."""
    training = _train_options(threads, epochs, seed, None, 0, False, layers="int8", ranges=ranges)
    return training | _teaching(None, model if soft > 0 else None, 2, soft, rate_scale)


def _teller(on_epoch: Callable[[Epoch], object] | None) -> Callable[[dict[str, Any]], object] | None:
    if on_epoch is None:
        return None
    if not callable(on_epoch):
        raise TypeError("on_epoch must be a function")
    tell = on_epoch
    return lambda epoch: tell(Epoch(**epoch))


def _finder(lookup: Lookup | None) -> Callable[[str, int], npt.NDArray[np.float32]] | None:
    if lookup is None:
        return None
    if isinstance(lookup, Index):
        index = lookup
        return lambda feature, label: np.ascontiguousarray(index.get(label), np.float32)
    if not callable(lookup):
        raise TypeError("lookup must be a function of (feature, id), or an Index")
    function = lookup
    return lambda feature, label: np.ascontiguousarray(function(feature, label), np.float32)


class Ranker:
    """A wide & deep model: a generalised linear model over raw and crossed features, and embeddings under a multi-layer
    perceptron, trained together.

    ``train``, ``create`` or ``open`` makes a Ranker. A Ranker never changes, so any number of threads may use it. Calls
    release the GIL while they work. A Ranker can be pickled.

    Data, here and below, is one of:
    - a mapping of column names to arrays or lists;
    - a pandas DataFrame;
    - a pyarrow Table or RecordBatch, or an object that offers Arrow's C stream;
    - a NumPy structured array;
    - the path of a CSV file, which is read as a stream, as the spec's "csv" says.

    Columns are numbers, truth values, texts, lists of texts (or of whole numbers) for multi-valued features, and (n,
    dim) floats for vectors. None, NaN, an empty text, and masked values are missing values. A mapping of single values
    is one row. Arrow's and NumPy's columns are not copied if their layout is float32, float64, int32, int64 or
    large_string. Columns the model does not know are ignored.
    """

    __slots__ = ("__weakref__", "_core", "_info", "_pruning", "_report")

    _core: _Core
    _info: dict[str, Any]
    _report: TrainReport | None
    _pruning: PruneReport | None

    def __init__(self) -> None:
        raise TypeError("a Ranker is made by Ranker.train, Ranker.create or Ranker.open")

    @classmethod
    def _of(cls, core: _Core, report: TrainReport | None = None) -> Ranker:
        ranker = cls.__new__(cls)
        ranker._core = core
        ranker._report = report
        ranker._pruning = None
        ranker._info = core.info()
        return ranker

    @classmethod
    def train(
        cls, spec: Spec | None, data: Data, valid: Data | None = None, *,
        threads: int = 0, epochs: int | None = None, seed: int | None = None,
        checkpoint: StrPath | None = None, checkpoint_steps: int = 0, resume: bool = False,
        precision: Precision | None = None, loss_scale: float | None = None,
        init: Ranker | None = None, teacher: Ranker | None = None,
        temperature: float = 2, soft: float = 0.7, rate_scale: float = 1,
        layers: Literal["f32", "int8"] = "f32", ranges: Ranges | None = None, keep: Sequence[str] = (),
        lookup: Lookup | None = None, progress: Progress = False, on_epoch: Callable[[Epoch], object] | None = None,
    ) -> Ranker:
        """Trains a model of the spec (docs/SPEC.md): a dict, JSON text, or the path of a file ending in .json.

        data: rows that have the label's column beside the features'.
        valid: rows to validate with. None holds out the share that the spec names.
        threads: 0 for all cores.
        epochs, seed: replace the spec's.
        checkpoint: file that the state is written to after every epoch.
        checkpoint_steps: also write the checkpoint after every so many mini-batches; 0: not.
        resume: training goes on from the checkpoint if it exists, to the same numbers.
        precision: numbers that the deep part's products multiply; weights, sums and the model stay f32. "auto" takes
            bf16 if the machine has its instructions, else f32. If it lacks them, bf16 and fp16 are emulated, no faster
            than f32. None: f32, or the checkpoint's. The report tells what was taken.
        loss_scale: for fp16, a scale from 1 to 2**24 that never changes. None adapts it: 65536 at first, halved when
            gradients overflow (the step is skipped), doubled after 2,000 good steps.
        init: model to begin with: its weights and its fitted features. The spec has the same label, features and
            layers. With init, spec None takes the model's own.
        teacher: model of the same loss and classes whose scores are learned too (arXiv 1503.02531).
        temperature: divides the logits of both models in the soft loss; 0.001 to 1000.
        soft: share of the teacher's loss, 0 to 1. With 1, data needs no labels.
        rate_scale: multiplies the spec's rates.
        layers: "int8" trains the dense layers as the INT8 layers that the model then has (arXiv 1712.05877). With init
            they are in INT8 from the first step, else after a tenth of the steps.
        ranges: of INT8 layers. "observed" (also None) is a moving average of each mini-batch's extremes. "learned"
            trains them with the weights (arXiv 1902.08153).
        keep: names of layers that stay float32, such as "dense.0".
        lookup: vectors for vector features whose column holds ids: a function of (feature, id), or an Index.
        progress: True shows a bar. A function is called with (done, total) rows and cancels by returning True.
        on_epoch: function called with every Epoch. An exception from the function ends the training.

        Raises KeyError for an unknown column. Raises ValueError for a spec or a value that cannot be taken, naming key,
        or row and column. ValueError too for one row or one class, from which nothing is learned. Raises
        shortlist.Error for a damaged checkpoint, one of another training, or a build without oneDNN.
        """
        text = _text_of(spec, init)
        options = _train_options(
            threads, epochs, seed, checkpoint, checkpoint_steps, resume, precision, loss_scale, layers, ranges, keep
        )
        options |= _teaching(init, teacher, temperature, soft, rate_scale)
        rows = source(data, text)
        held_out = None if valid is None else source(valid, text)
        with shown(progress, "training", "rows") as show:
            core, report = _core.Ranker.train(
                text, rows, held_out, options, _finder(lookup), show, _teller(on_epoch)
            )
        return cls._of(core, TrainReport(**report))

    def prune(
        self, data: Data | None = None, valid: Data | None = None, *,
        units: float = 0, multiply_adds: float = 0, weights: float = 0, weights_end: float = 0.5,
        criterion: Literal["taylor", "norm"] = "taylor", per_layer: bool = False, multiple: int = 1, rows: int = 65536,
        threads: int = 0, epochs: int | None = None,
        checkpoint: StrPath | None = None, checkpoint_steps: int = 0, resume: bool = False,
        teacher: Ranker | None = None, temperature: float = 2, soft: float = 0.7, rate_scale: float = 1,
        lookup: Lookup | None = None, progress: Progress = False, on_epoch: Callable[[Epoch], object] | None = None,
    ) -> Ranker:
        """Makes a smaller model of this one, and trains it on with the rows of data by this model's spec.

        data: rows to measure units and to train with. None trains nothing, and units then need criterion "norm".
        units: share of the hidden units to cut. The layers become narrower, and so faster.
        multiply_adds: in place of units: cuts units until at least this share of the layers' multiply-adds is gone.
        weights: share of the layers' weights to set to 0, the smallest first, while training (arXiv 1710.01878). They
            stay 0. The layers are not faster by it.
        weights_end: share of the steps after which all of these are 0.
        criterion: "taylor" cuts units without which the loss changes least, to first order (arXiv 1906.10771). "norm"
            cuts those with the smallest weights.
        per_layer: cuts the same share of each layer, not the least important of all.
        multiple: widths are rounded up to multiples of it.
        rows: training rows that "taylor" looks at; 0: all.

        Other arguments are those of ``train``. ``pruning`` of the model made has the PruneReport.

        Raises ValueError if nothing is to be cut, or a share cannot be reached.
        """
        if criterion not in ("taylor", "norm"):
            raise ValueError(f"criterion is {criterion!r}; it must be 'taylor' or 'norm'")
        cuts = {
            "units": float(units),
            "multiply_adds": float(multiply_adds),
            "weights": float(weights),
            "weights_end": float(weights_end),
            "criterion": int(criterion == "norm"),
            "per_layer": bool(per_layer),
            "multiple": count("multiple", multiple),
            "rows": count("rows", rows),
        }
        options = _train_options(threads, epochs, None, checkpoint, checkpoint_steps, resume)
        options |= _teaching(None, teacher, temperature, soft, rate_scale)
        text = self.spec_text
        trained = None if data is None else source(data, text)
        held_out = None if valid is None else source(valid, text)
        with shown(progress, "training", "rows") as show:
            core, report = self._core.prune(
                trained, held_out, cuts, options, _finder(lookup), show, _teller(on_epoch)
            )
        made = Ranker._of(core)
        made._pruning = PruneReport(**report)
        return made

    @classmethod
    def create(cls, spec: Spec, data: Data, *, seed: int | None = None, lookup: Lookup | None = None) -> Ranker:
        """Makes a model without training: features are fitted to data, weights are as before the first step."""
        text = spec_text(spec)
        start = 0 if seed is None else count("seed", seed, 2**64)
        return cls._of(_core.Ranker.create(text, source(data, text), start, _finder(lookup)))

    @classmethod
    def open(cls, path: StrPath) -> Ranker:
        """Reads a saved model.

        Raises FileNotFoundError or another OSError if the file cannot be read. Raises shortlist.Error if the file is no
        sound model.
        """
        with missing_file(path):
            return cls._of(_core.Ranker.open(os.fsencode(path)))

    @staticmethod
    def check(path: StrPath, progress: Progress = False) -> RankerCheckReport:
        """Verifies every byte of a model's file, or a checkpoint's.

        That is the header, sections against their checksums, zeros between sections, and all that ``open`` and resumed
        training need of the file. An open Ranker is a copy in memory and was verified as it was made.

        Raises shortlist.Error if the file is damaged. The error's ``report`` says what was found. Other errors are
        those of ``open``.
        """
        with missing_file(path), shown(progress, "checking", "B") as tell:
            found = _Core.check(os.fsencode(path), tell)
        report: RankerCheckReport = checked(found, RankerCheckReport)
        return report

    def save(self, path: StrPath, progress: Progress = False) -> None:
        """Writes the model to path. Afterwards path holds the whole model; on an exception it holds its old content."""
        with shown(progress, "saving", "B") as tell:
            self._core.save(os.fsencode(path), tell)

    def predict(self, data: Data, threads: int = 1, *, lookup: Lookup | None = None) -> Scores:
        """Scores: (n,) float32, or (n, classes) of a model of several classes.

        A probability under logistic and multi-class loss, a value under squared loss. A row's score may differ
        in its last bits with how many rows come with it. threads: 0 for all cores.
        Raises KeyError if a column that the model needs is not in data.
        """
        workers, find = count("threads", threads), _finder(lookup)
        outputs: int = self._info["outputs"]
        rows = source(data, self.spec_text)
        if isinstance(rows, _core.Table):
            scores = np.empty((rows.rows, outputs), np.float32)
            self._core.predict(rows, workers, find, scores)
        else:
            held = self._core.predict_rows(rows, workers, find)
            scores = np.frombuffer(held, np.float32).reshape(-1, outputs)
        return scores[:, 0] if outputs == 1 else scores

    def evaluate(
        self,
        data: Data,
        group: str | None = None,
        k: int = 10,
        *,
        threads: int = 0,
        lookup: Lookup | None = None,
        progress: Progress = False,
    ) -> Metrics:
        """Predicts rows that have the label's column, and compares. group: column whose values group the rows for
        group_auc and ndcg at k. A group's NDCG takes labels of at least 0; below that: ValueError."""
        rows, find, at = source(data, self.spec_text, group=group), _finder(lookup), count("k", k)
        with shown(progress, "evaluating", "rows") as tell:
            found = self._core.evaluate(rows, group, at, count("threads", threads), find, tell)
        found["decile_rows"] = np.array(found["decile_rows"], np.int64)
        for name in ("decile_score", "decile_label"):
            found[name] = np.array(found[name], np.float64)
        return Metrics(**found)

    def quantize(
        self, data: Data, eval: Data | None = None, *, max_drop: float = 0.0005, relative: bool = False,
        metric: Measure = "default", group: str | None = None, k: int = 10, mode: Mode = "auto",
        strategy: Strategy = "exhaustive", calibration: Calibration = "mse", quantile: float = 1e-4,
        symmetric: bool = False, bias_correction: bool = True, tables: Tables = "auto", rows: int = 4096, seed: int = 0,
        keep: Sequence[str] = (), trials: int = 0, timeout: float = 0.0,
        epochs: int = 2, rate_scale: float = 0.03, soft: float = 0.5, ranges: Ranges = "observed",
        threads: int = 0, lookup: Lookup | None = None, progress: Progress = False,
    ) -> Quantized:
        """Finds the fastest INT8 and bf16 layers within an accuracy bound (docs/internals/precision.md).

        data: rows to calibrate on, with the label's column.
        eval: rows to measure on. Give rows that the model was not trained on. None: data.
        max_drop: how much worse than this model the metric may be. relative: max_drop is a share of this model's
            value.
        metric: "default" is AUC, or logloss of several classes, or RMSE under squared loss. "ndcg", at k, needs group.
        mode: precisions that a layer may have. "static" is INT8 with ranges of inputs by calibration. "dynamic" is
            INT8 with each row's own range. "bf16" is bf16 alone. "auto" allows all of these. "qat" makes one choice:
            it trains this model on with its layers in INT8, on data's labels, by its own spec.
        strategy: "exhaustive" judges all choices, the fastest first, with every calibration, and proves its result.
            "bayesian" judges the choice of the largest expected improvement, with every calibration, by the seed.
            "accuracy-aware", "basic" and "mse" begin with all layers in INT8 of the one calibration, under "bf16" in
            bf16. They take layers back to float32.
        calibration: the range of inputs that "accuracy-aware", "basic" and "mse" take. "mse" also chooses scales of
            weights by squared error, those of "dynamic" layers under every strategy.
        quantile: the share of inputs that calibration by "quantile" leaves out. symmetric: ranges have 0 in their
            middle.
        bias_correction: whether biases make up for the mean error of each output.
        tables: embedding tables as they are ("f32"), or in codes of 8 or 4 bits. "auto" judges all three with every choice
            of the layers, and takes the smallest if costs are equal. Under "qat", "auto" is "f32".
        rows, seed: how many rows calibration draws, and which. Memory holds the inputs of all layers for these rows.
            "qat" begins its ranges on 4,096 rows instead. The seed is also that of "bayesian" and of the training of
            "qat", for which 0 takes the spec's.
        keep: names of layers that stay float32, such as "dense.0".
        trials, timeout: most trials, and most seconds. 0 sets no limit, but "bayesian" ends after 100 trials. It takes
            1,000 at most.
        epochs, rate_scale, ranges: of "qat", as of ``train``.
        soft: of "qat", the share of the loss that compares with this model's own scores. The labels have the rest.
        progress: a function is called with (done, 0) trials, under "qat" with (done, total) rows. It cancels by
            returning True.

        If no choice is within the bound, the model of the least drop is returned, and ``report.within`` is False.
        Raises ValueError for rows that give no range or no metric, for a model that is quantised already, and for
        arguments of "qat" with another mode or the reverse. Raises KeyError for an unknown layer or column.
        """
        searched = (strategy, calibration, quantile, symmetric, bias_correction, trials, timeout)
        _check_mode(mode, (epochs, rate_scale, soft, ranges), searched)
        options = {
            **_bound(max_drop, relative, metric, group, k, mode),
            **_calibrating(calibration, quantile, symmetric, bias_correction, tables, rows, seed, keep),
            **_searching(strategy, trials, timeout, threads),
            "training": _own_training(self, threads, epochs, seed, ranges, soft, rate_scale) if mode == "qat" else None,
        }
        given = source(data, self.spec_text, group=None if eval is not None else group)
        measured = None if eval is None else source(eval, self.spec_text, group=group)
        with shown(progress, *(("training", "rows") if mode == "qat" else ("judging", "trials"))) as tell:
            core, report, judged = self._core.quantize(given, measured, options, _finder(lookup), tell)
        found = QuantizeReport(**report, trials=tuple(Trial(**trial) for trial in judged))
        return Quantized(Ranker._of(core), found)

    def encode(self, data: Data, *, lookup: Lookup | None = None) -> Encoded:
        """Rows as the model sees them, for use outside of it."""
        rows = source(data, self.spec_text)
        dense, ids, bag_start, bag_ids = self._core.encode(rows, _finder(lookup))
        info = self._info
        flat, numbers = np.frombuffer(dense, np.float32), np.frombuffer(ids, np.uint32)
        start = np.frombuffer(bag_start, np.uint32)
        n = rows.rows if isinstance(rows, _core.Table) else self._rows_of(flat, numbers, start)
        return Encoded(
            flat.reshape(n, info["dense_width"]),
            numbers.reshape(n, info["id_count"]),
            start,
            np.frombuffer(bag_ids, np.uint32),
        )

    def _rows_of(self, dense: npt.NDArray[Any], ids: npt.NDArray[Any], start: npt.NDArray[Any]) -> int:
        info = self._info
        for have, width in ((dense.size, "dense_width"), (ids.size, "id_count"), (start.size - 1, "bag_count")):
            if info[width]:
                return int(have // info[width])
        return 0

    def predict_encoded(self, encoded: Encoded) -> Scores:
        """Scores of rows as ``encode`` gives them. Raises ValueError if an id is out of range."""
        dense, ids, bag_start, bag_ids = encoded
        n, outputs = len(dense), self._info["outputs"]
        if dense.shape != (n, self._info["dense_width"]) or ids.shape != (n, self._info["id_count"]):
            raise ValueError(f"encoded rows have shapes {dense.shape} and {ids.shape}, which are not this model's")
        scores = np.empty((n, outputs), np.float32)
        self._core.predict_encoded(
            n,
            np.ascontiguousarray(dense, np.float32),
            np.ascontiguousarray(ids, np.uint32),
            np.ascontiguousarray(bag_start, np.uint32),
            np.ascontiguousarray(bag_ids, np.uint32),
            scores,
        )
        return scores[:, 0] if outputs == 1 else scores

    @property
    def report(self) -> TrainReport | None:
        """How the training went; None if this object was not made by ``train``."""
        return self._report

    @property
    def pruning(self) -> PruneReport | None:
        """The report of the pruning that made this object; None if another call made it."""
        return self._pruning

    @property
    def info(self) -> RankerInfo:
        """Sizes."""
        return RankerInfo(**{name: value for name, value in self._info.items() if name != "spec"})

    @property
    def spec(self) -> dict[str, Any]:
        """The spec it was made of."""
        found: dict[str, Any] = json.loads(self.spec_text)
        return found

    @property
    def spec_text(self) -> str:
        """The spec's JSON text, as it was given."""
        text: str = self._info["spec"]
        return text

    @property
    def classes(self) -> list[str]:
        """The label's value that each output stands for, as text; under logistic loss those of 0 and 1."""
        return self._core.classes()

    @property
    def layers(self) -> list[Layer]:
        """The dense layers, with their precision."""
        return [Layer(**layer) for layer in self._core.layers()]

    @property
    def features(self) -> list[Feature]:
        """The features, in the spec's order."""
        return [Feature(**feature) for feature in self._core.features()]

    @property
    def embeddings(self) -> list[Embedding]:
        """The embedding tables, in the order of ``tensors()``."""
        return [Embedding(**table) for table in self._core.embeddings()]

    def tensors(self) -> dict[str, npt.NDArray[np.float32]]:
        """The weights by name, (rows, columns) each, read-only and without a copy.

        An embedding table in codes is decoded at the first call, and the decoded weights stay in memory.

        Names are "wide" (wide_size, outputs), "bias" (1, outputs), "embedding.NAME" (size, dim), "dense.I.weight" (in,
        out) and "dense.I.bias" (1, out).
        """
        return _core.Ranker.tensors(self._core)

    def with_tensors(self, tensors: Mapping[str, npt.ArrayLike]) -> Ranker:
        """A model of the same features with the given weights, vectors as (n,) or (1, n); those not given are this
        one's. Raises KeyError if it has no tensor of that name, ValueError for another shape or a number not finite.
        An embedding in codes that is given becomes floats, and so does a layer in INT8 whose weight or bias is given."""
        given = {name: np.atleast_2d(np.ascontiguousarray(array, np.float32)) for name, array in tensors.items()}
        for name, array in given.items():
            if array.ndim != 2:
                raise ValueError(f"tensor {name!r} has shape {array.shape}; it must be (rows, columns)")
        return Ranker._of(self._core.with_tensors(given))

    def _with_layers(self, layers: Sequence[GivenLayer]) -> Ranker:
        """This model of floats with its dense layers in the given numbers."""
        given: list[tuple[Any, ...]] = []
        for layer in layers:
            number = _LAYER_PRECISIONS.index(layer.precision)
            if layer.codes is None or layer.weight_scales is None:
                given.append((number,))
                continue
            codes, scales = np.ascontiguousarray(layer.codes), np.ascontiguousarray(layer.weight_scales)
            given.append((number, layer.scale, layer.zero, codes, scales))
        return Ranker._of(self._core.with_layers(given))

    def __repr__(self) -> str:
        info = self._info
        return (
            f"<shortlist.Ranker loss={info['loss']!r}: {info['features']} features, {info['layers']} layers, "
            f"{info['parameters']} parameters>"
        )

    def to_bytes(self) -> bytes:
        """The model as ``save`` writes it."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.slr")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    @classmethod
    def from_bytes(cls, data: bytes) -> Ranker:
        """The model of such bytes."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.slr")
            with open(path, "wb") as file:
                file.write(data)
            return cls.open(path)

    def __reduce__(self) -> tuple[Callable[[bytes], Ranker], tuple[bytes]]:
        return Ranker.from_bytes, (self.to_bytes(),)
