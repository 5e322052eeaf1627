"""Draws times of a row in Criteo's shape, and what accuracy costs on Adult."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first

import keep  # noqa: E402

COLOURS = {"shortlist": "tab:blue", "onnxruntime": "tab:orange", "openvino": "tab:green"}


def library(name):
    return name.split("/")[0]


def draw_speed(axes, case):
    rows = [row for row in case["contenders"] if not row["name"].endswith("/split")][::-1]
    middle = [row["us"]["median"] for row in rows]
    low = [row["us"]["median"] - row["us"]["min"] for row in rows]
    high = [row["us"]["max"] - row["us"]["median"] for row in rows]
    axes.barh([row["name"] for row in rows], middle, xerr=[low, high], height=0.7, error_kw={"linewidth": 0.8},
              color=[COLOURS[library(row["name"])] for row in rows])
    axes.set_xlabel("µs a row, median and quartiles")
    axes.set_title("845-1024-512-256-1, 500 candidates of one user", fontsize=10)
    axes.tick_params(axis="y", labelsize=7)


def draw_accuracy(axes, case):
    for row in case["models"]:
        axes.scatter(row["requests_per_s"], row["drop"], s=row["bytes"] / 2e3, alpha=0.5,
                     color=COLOURS[library(row["name"])])
        axes.annotate(row["name"], (row["requests_per_s"], row["drop"]), fontsize=6)
    axes.margins(x=0.2)
    axes.set_xlabel("requests of 500 rows a second")
    axes.set_ylabel("drop of AUC")
    axes.set_title("Adult: the area is the model's bytes", fontsize=10)


def draw(summary, about, path):
    cases = [case for case in summary["speed"] if (case["net"], case["rows"]) == ("criteo", 500)]
    tables = [case for case in summary["accuracy"] if case["set"] == "adult"]
    if not cases or not tables:
        return
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 0.2 * len(cases[0]["contenders"]) + 1.5))
    draw_speed(left, cases[0])
    draw_accuracy(right, tables[0])
    figure.suptitle(about["machine"]["cpu"], fontsize=10)
    figure.tight_layout()
    keep.picture(figure, path)
