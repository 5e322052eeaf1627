"""The tables that are learned, the spec of each, and the measures of what was learned."""

import math
import pathlib

import pandas
from sklearn.metrics import log_loss, roc_auc_score

SPECS = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "specs"

# Name of the spec, folder of the rows, and the measure that says which of two models is better.
SETS = {
    "adult": ("adult", "auc"),
    "movielens_rating": ("movielens100k", "rmse"),
    "movielens_like": ("movielens100k", "auc"),
    "flights": ("flights", "auc"),
}
LARGER_IS_BETTER = {"auc": True, "accuracy": True, "logloss": False, "rmse": False}


def labels(spec, rows):
    """The labels of a table's rows, as the spec has them."""
    said = spec["label"]
    column = rows[said["column"]]
    if "positive" in said:
        return (column == said["positive"]).astype(float).to_numpy()
    if "at_least" in said:
        return (column >= said["at_least"]).astype(float).to_numpy()
    return column.astype(float).to_numpy()


def read(path):
    """A table whose only missing values are empty fields: '?' and 'None' are values like others."""
    return pandas.read_csv(path, keep_default_na=False, na_values=[""])


def measures(spec, labels_, scores):
    """By scikit-learn, whoever made the scores."""
    if spec["label"].get("loss") == "squared":
        return {"rmse": math.sqrt(((labels_ - scores) ** 2).mean())}
    scores = scores.astype(float)
    return {"auc": roc_auc_score(labels_, scores), "logloss": log_loss(labels_, scores),
            "accuracy": float(((scores >= 0.5) == labels_).mean())}
