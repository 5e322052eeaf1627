"""The tables of docs/BENCHMARKS.md from the records living-SET.json: table.py [--write | RECORD...]."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "peers"), str(HERE.parent)]

from report import CHANGES, TAILS, mb, micro, shown  # noqa: E402
from setting import ROOT, between  # noqa: E402


def row(*cells):
    return f"| {' | '.join(cells)} |"


def median(spreads, form):
    return shown(spreads and spreads["median"], form, "–")


def of_books(record):
    """A line for each runbook, library and depth."""
    lines = [row("runbook", "library", "depth", "recall@10, mean", "least", "µs a query", "p99", "insert", "delete",
                 "replace", "MB", "lost"), "|---|---|" + "---:|" * 10]
    for name in record["runbooks"]:
        for library in record["libraries"]:
            found = library["books"].get(name, {})
            for one in found.get("depths", []):
                spent = [shown(micro(found["costs"].get(kind)), ".0f", "–") for kind in CHANGES]
                lines.append(row(name, library["library"], str(one["depth"]), f"{one['recall']:.4f}",
                                 f"{one['least']:.3f}", f"{one['us']:.0f}", f"{one['p99_us']:.0f}", *spent,
                                 shown(mb(found["bytes"]["last"]), ".1f", "–"), str(found["lost"]["lost"])))
    return lines


def beside_fresh(record):
    lines = [row("runbook", "library", "depth", "recall lost, mean", "the most, beyond two errors", "time a query",
                 "bytes", "seconds of a generation over a build's"), "|---|---|" + "---:|" * 6]
    for name in record["runbooks"]:
        for library in record["libraries"]:
            fresh = library["books"].get(name, {}).get("fresh", {"depths": []})
            for one in fresh["depths"]:
                lines.append(row(name, library["library"], str(one["depth"]), f"{one['lost_mean']:.4f}",
                                 f"{one['lost_most']:.4f}", f"{one['time']:.2f}", shown(fresh["bytes"], ".2f", "–"),
                                 shown(fresh["rebuild_share"], ".3f", "–")))
    return lines


def beside_writer(found):
    lines = [row("library", "ef", "p50, p99, p99.9 idle, µs", "beside a writer of another index, µs",
                 "beside its own writer, µs", "p99 over idle", "p99.9 over idle", "p99 over the other writer's",
                 "changes a second", "adds by 2 threads, rows a second (over hnswlib's)"), "|---|" + "---:|" * 9]
    for one in found["libraries"]:
        if "failed" in one:
            continue
        times = [" / ".join(median(one[kind][tail], ".0f") for tail in TAILS) for kind in ("idle", "apart", "beside")]
        added = "; ".join(f"{how} {of['rows_per_s']['median']:,.0f} ({median(of['over_hnswlib'], '.2f')})"
                          for how, of in one["adds"].items())
        lines.append(row(one["library"], str(one["ef"]), *times, median(one["ratio"]["p99_us"], ".2f"),
                         median(one["ratio"]["p999_us"], ".2f"), median(one["over_apart"]["p99_us"], ".2f"),
                         median(one["changes_per_s"], ",.0f"), added))
    return lines


def failures(record):
    """Lines on who could not take part, and where."""
    told = [f"- {library['library']}: {library['failed']}" for library in record["libraries"] if "failed" in library]
    return told + [f"- {library['library']}, {name}: {found['failed']}" for library in record["libraries"]
                   for name, found in library["books"].items() if "failed" in found]


def markdown(stem, record):
    machine = ", ".join(filter(None, [record["machine"]["cpu"], record["machine"].get("generation")]))
    lines = [f"### {record['data']['name']} on {machine}", "",
             f"m {record['parameters']['m']}, commit {record['commit'][:12]}, {record['date'][:10]}. Insert, delete and "
             f"replace are in µs a vector. [Record](../bench/results/{stem}.json), "
             f"[picture](../bench/results/{stem}.svg).", "", *of_books(record)]
    if any("fresh" in found for library in record["libraries"] for found in library["books"].values()):
        lines += ["", "Beside a fresh build of the same vectors, at the same depth:", "", *beside_fresh(record)]
    if "libraries" in record.get("beside", {}):
        lines += ["", f"One core searches {record['beside']['live']:,} live vectors while another deletes and adds:", "",
                  *beside_writer(record["beside"])]
    return "\n".join(lines + (["", *failures(record)] if failures(record) else []))


def main():
    write = sys.argv[1:] == ["--write"]
    paths = [] if write else [pathlib.Path(path) for path in sys.argv[1:]]
    paths = paths or [path for path in sorted(ROOT.glob("bench/results/living-*.json")) if "-part" not in path.stem]
    text = "\n\n".join(markdown(path.stem, json.loads(path.read_text())) for path in paths)
    if not write:
        return print(text)
    page = ROOT / "docs/BENCHMARKS.md"
    page.write_text(between(page.read_text(), "living", text))


if __name__ == "__main__":
    main()
