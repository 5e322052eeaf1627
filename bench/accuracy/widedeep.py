"""pytorch-widedeep, told of the same features as far as it can take them.

Buckets become categories, crosses become crossed columns, lists of texts an indicator column for each text. Crosses
with a list are left out, since pytorch-widedeep has none. The optimiser, rate and dropout are the peer's own defaults:
the peer is untuned.
"""

import os
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("TQDM_DISABLE", "1")

import numpy  # noqa: E402
import pandas  # noqa: E402
import torch  # noqa: E402
from pytorch_widedeep import Trainer  # noqa: E402
from pytorch_widedeep.callbacks import EarlyStopping  # noqa: E402
from pytorch_widedeep.models import TabMlp, Wide, WideDeep  # noqa: E402
from pytorch_widedeep.preprocessing import TabPreprocessor, WidePreprocessor  # noqa: E402

HIDDEN = [128, 64, 32]
EPOCHS, BATCH, VALIDATION, PATIENCE = 10, 256, 0.1, 3
REGRESSION_EPOCHS = 50  # it begins at 0, far from the mean rating


class Columns:
    """The spec's features as columns of a table."""

    def __init__(self, spec, rows):
        self.spec = spec
        self.indicators = {f["name"]: sorted({text for texts in rows[f.get("column", f["name"])].dropna()
                                              for text in texts.split("|")})
                           for f in spec["features"] if f["type"] == "multi"}
        self.means = rows.mean(numeric_only=True)
        self.numbers, self.categories, self.crosses = [], [], []
        for feature in spec["features"]:
            self.sort(feature)

    def sort(self, feature):
        name, kind = feature["name"], feature["type"]
        if kind == "numeric":
            self.numbers.append(name)
        elif kind in ("bucket", "categorical"):
            self.categories.append((name, feature["dim"]))
        elif kind == "multi":
            self.numbers += [f"{name}={text}" for text in self.indicators[name]]
        elif not set(feature["of"]) & set(self.indicators):
            self.crosses.append(tuple(feature["of"]))

    def table(self, rows):
        made = {}
        for feature in self.spec["features"]:
            name, kind, column = feature["name"], feature["type"], feature.get("column", feature["name"])
            if kind == "numeric":
                value = rows[column].fillna(self.means[column]).astype(float)
                made[name] = numpy.sign(value) * numpy.log1p(value.abs()) if feature.get("log") else value
            elif kind == "bucket":
                made[name] = numpy.digitize(rows[column], feature["boundaries"]).astype(str)
            elif kind == "categorical":
                made[name] = rows[column].astype(str)
            elif kind == "multi":
                texts = rows[column].fillna("").str.split("|")
                for text in self.indicators[name]:
                    made[f"{name}={text}"] = texts.map(lambda has, text=text: float(text in has))
        return pandas.DataFrame(made)


def scores(spec, train, train_labels, test, seed):
    """The peer's scores of the test rows, after a training with its own default optimiser and early stopping."""
    torch.manual_seed(seed)
    columns = Columns(spec, train)
    train, test = columns.table(train), columns.table(test)
    wide = WidePreprocessor(wide_cols=[name for name, _ in columns.categories], crossed_cols=columns.crosses)
    tab = TabPreprocessor(cat_embed_cols=columns.categories, continuous_cols=columns.numbers,
                          cols_to_scale=columns.numbers)
    x = {"X_wide": wide.fit_transform(train), "X_tab": tab.fit_transform(train)}
    squared = spec["label"].get("loss") == "squared"
    model = WideDeep(
        wide=Wide(input_dim=int(x["X_wide"].max()) + 1),
        deeptabular=TabMlp(column_idx=tab.column_idx, cat_embed_input=tab.cat_embed_input,
                           continuous_cols=columns.numbers, mlp_hidden_dims=HIDDEN))
    trainer = Trainer(model, objective="regression" if squared else "binary", seed=seed, verbose=0,
                      callbacks=[EarlyStopping(patience=PATIENCE, restore_best_weights=True)])
    trainer.fit(**x, target=train_labels.astype(numpy.float32), batch_size=BATCH, val_split=VALIDATION,
                n_epochs=REGRESSION_EPOCHS if squared else EPOCHS)
    asked = {"X_wide": wide.transform(test), "X_tab": tab.transform(test)}
    return trainer.predict(**asked) if squared else trainer.predict_proba(**asked)[:, 1]
