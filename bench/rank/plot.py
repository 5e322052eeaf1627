"""Draws the ratios with their spread."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first

import keep  # noqa: E402


def bars(summary):
    for row in summary["serving"]:
        if row["event"] == "single" or row["items"] == "layer":
            what = "500 candidates" if row["event"] == "request" else "one row"
            once = ", user's inputs once" if row.get("form") == "once" else ""
            yield f"serving, {what}, {row['shape']}{once}", row["ratio"], "tab:blue"
    for row in summary["training"]:
        yield f"training, {row['data']}, batch {row['batch']}, {row['threads']} thr.", row["ratio"], "tab:orange"


def draw(summary, about, path):
    rows = list(bars(summary))[::-1]
    if not rows:
        return
    figure, axes = pyplot.subplots(figsize=(7.5, 0.28 * len(rows) + 1.2))
    medians = [ratio["median"] for _, ratio, _ in rows]
    low = [ratio["median"] - ratio["min"] for _, ratio, _ in rows]
    high = [ratio["max"] - ratio["median"] for _, ratio, _ in rows]
    axes.barh([name for name, _, _ in rows], medians, xerr=[low, high], color=[colour for _, _, colour in rows],
              height=0.7, error_kw={"linewidth": 0.8})
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("times as fast as ONNX Runtime (serving) and PyTorch (training)")
    axes.set_title(about["machine"]["cpu"], fontsize=10)
    axes.tick_params(axis="y", labelsize=8)
    figure.tight_layout()
    keep.picture(figure, path)
