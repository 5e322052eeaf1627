"""Draws processor seconds, evaluations and nanoseconds an evaluation over the number of vectors, with their laws."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first

import keep  # noqa: E402
import laws  # noqa: E402

PANELS = (("processor_s", "processor seconds of a build", True), ("evaluations", "evaluations at recall@10 0.95", False),
          ("ns", "ns an evaluation, one core", False))


def value_of(row, field):
    return row[field]["median"] if isinstance(row[field], dict) else row[field]


def draw(record, path):
    summary = record["summary"]
    figure, panels = pyplot.subplots(1, len(PANELS), figsize=(13, 4))
    for axes, (field, label, by_logarithm) in zip(panels, PANELS):
        for number, fits in enumerate(summary["fits"]):
            rows = [row for row in summary["sizes"] if row["builder"] == fits["builder"] and row[field]]
            sizes = [row["rows"] for row in rows]
            axes.plot(sizes, [value_of(row, field) for row in rows], f"C{number}o", markersize=4, label=fits["builder"])
            if field in fits:
                axes.plot(sizes, [laws.at(fits[field], size) for size in sizes], f"C{number}-", linewidth=0.8,
                          label=fits[field]["law"])
        axes.set_xscale("log")
        if by_logarithm:
            axes.set_yscale("log")
        axes.set_xlabel("vectors")
        axes.set_ylabel(label)
        axes.grid(True, which="both", linewidth=0.3)
        axes.legend(fontsize=7)
    figure.suptitle(f"synthetic, {record['parameters']['dim']} dimensions, codes i4, {record['machine']['cpu']}",
                    fontsize=9)
    figure.tight_layout()
    keep.picture(figure, path)
