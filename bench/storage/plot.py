"""Draws the time to the first answer over the file's size, QPS by medium, and the rates of durable adding."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first

import keep  # noqa: E402


def bars(axes, names, spreads, label):
    middle = [s["median"] for s in spreads]
    reach = [[s["median"] - s["min"] for s in spreads], [s["max"] - s["median"] for s in spreads]]
    axes.bar(names, middle, yerr=reach, capsize=3, width=0.6)
    axes.set_ylabel(label)
    axes.tick_params(axis="x", labelrotation=30)


def draw(about, summary, path):
    figure, (opening, media, adding) = pyplot.subplots(1, 3, figsize=(12, 4))
    for place in sorted({row["place"] for row in summary["open"]}):
        rows = [row for row in summary["open"] if row["place"] == place]
        opening.plot([row["bytes"] / 2**30 for row in rows], [row["answer_ms"]["median"] for row in rows], marker="o",
                     markersize=3.5, label=f"place {place}")
    opening.set_xscale("log")
    opening.set_ylim(bottom=0)
    opening.set_xlabel("GiB of the file")
    opening.set_ylabel("open and first answer, ms")
    opening.grid(True, which="both", linewidth=0.3)
    opening.legend()
    bars(media, [row["medium"] for row in summary["qps"]], [row["qps"] for row in summary["qps"]],
         "queries a second, one thread")
    bars(adding, [row["way"] for row in summary["insert"]], [row["rows_per_s"] for row in summary["insert"]],
         "rows a second, durable by 1,000 (dram: not)")
    adding.set_yscale("log")
    figure.suptitle(f"{about['data']['name']}, {about['machine']['cpu']}", fontsize=10)
    figure.tight_layout()
    keep.picture(figure, path)
