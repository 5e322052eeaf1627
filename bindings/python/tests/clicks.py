"""Rows of clicks and a spec for them, which the tests of ranking share."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

DIM = 4
CITIES = ["Oslo", "Köln", "São Paulo", "Łódź", "x,y \"z\""]
TAGS = ["red", "green", "blue", "grün"]


def spec(**changes: Any) -> dict[str, Any]:
    """Gives the spec of a small model with a feature of every form."""
    made: dict[str, Any] = {
        "label": {"column": "click"},
        "features": [
            {"name": "age", "type": "numeric", "indicator": True},
            {"name": "price", "type": "numeric", "log": True, "side": "item"},
            {"name": "age_bucket", "type": "bucket", "column": "age", "boundaries": [20, 40, 60]},
            {"name": "city", "type": "categorical", "dim": 4},
            {"name": "shop", "type": "categorical", "hash": 50, "dim": 3, "side": "item"},
            {"name": "tags", "type": "multi", "dim": 3, "combine": "mean", "side": "item"},
            {"name": "city_x_shop", "type": "cross", "of": ["city", "shop"], "hash": 100},
            {"name": "face", "type": "vector", "dim": DIM},
        ],
        "deep": {"hidden": [16, 8]},
        "train": {"epochs": 2, "batch": 64, "validation": 0.2, "seed": 3},
    }
    made.update(changes)
    return made


def columns(n: int = 400, seed: int = 1, missing: bool = True) -> dict[str, Any]:
    """Columns as NumPy arrays and lists, with values that text holds exactly."""
    rng = np.random.default_rng(seed)
    age = rng.integers(10, 80, n).astype(np.float64)
    price = rng.integers(0, 4000, n) / 8
    city: list[Any] = [CITIES[i] for i in rng.integers(0, len(CITIES), n)]
    shop = rng.integers(0, 30, n)
    tags: list[Any] = [[TAGS[i] for i in rng.permutation(len(TAGS))[: rng.integers(0, 4)]] for _ in range(n)]
    face = (rng.integers(-8, 8, (n, DIM)) / 4).astype(np.float32)
    score = 0.05 * (age - 45) + face[:, 0] + np.array([("red" in t) - 0.5 for t in tags]) + (shop % 3 - 1)
    click = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)
    if missing:
        age[::7] = np.nan
        city[::5] = [None] * len(city[::5])
    return {"age": age, "price": price, "city": city, "shop": shop, "tags": tags, "face": face, "click": click}


def write_csv(path: Any, data: dict[str, Any]) -> str:
    """The columns as text: lists by |, vectors by spaces, missing values empty."""

    def text(value: Any) -> str:
        if value is None or (isinstance(value, float) and value != value):
            return ""
        if isinstance(value, list):
            return "|".join(value)
        if isinstance(value, np.ndarray):
            return " ".join(str(x) for x in value.tolist())
        return str(value)

    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(data)
        writer.writerows([text(value) for value in row] for row in zip(*data.values()))
    return str(path)
