"""Ratios, targets and tables of ./dev bench filters. report.py RECORD... prints the tables of records in Markdown, and
report.py --write puts those of bench/results between the marks of docs/notebook/filters.md."""

import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from setting import ROOT, between, fact, span, spread, verdicts  # noqa: E402

OURS, UNFILTERED, EXACT, SCAN, TUNED = "auto", "unfiltered", "exact", "scan", "recall=0.95"
FORCED_MOST, UNFILTERED_MOST, SCAN_MOST, CONSTANT_US, PEERS_LEAST = 1.25, 4, 1.25, 5, 2
EXCLUDED_MOST, MAKING_MOST_MS = 1.10, 25
TUNED_LEAST = 0.93  # 100 queries tell a recall to 0.02


def times(rounds, name):
    return {number: took[name] for number, took in enumerate(rounds) if name in took}


def median(rounds, name):
    return statistics.median(times(rounds, name).values())


def cheapest(choices, rounds, kinds):
    """The name of the fastest of these kinds that reach the recall; None where none does."""
    names = [name for name, choice in choices.items() if choice["kind"] in kinds and choice["reached"]]
    return min(names, key=lambda name: median(rounds, name), default=None)


def ratios(rounds, above, below):
    """The spread of above(round) / below(round) over the rounds that have both; None where either lacks a name."""
    found = []
    for took in rounds:
        try:
            found.append(above(took) / below(took))
        except KeyError:
            continue
    return spread(found) if found else None


def least_scan(choices, took):
    """The time of the faster exact scan of what is allowed: ours, where it reaches the recall, or the product."""
    ours = [took[EXACT]] if choices.get(EXACT, {}).get("reached") and EXACT in took else []
    return min([took[SCAN], *ours])


def bound(choices, took):
    return min(UNFILTERED_MOST * took[UNFILTERED], SCAN_MOST * least_scan(choices, took)) + CONSTANT_US


def row(about, choices, rounds):
    """A cell: all that was chosen, its times, and the ratios of our own choice to others."""
    forced, peer = cheapest(choices, rounds, {"forced"}), cheapest(choices, rounds, {"peer"})

    def ours(took):
        return took[OURS]

    compared = {"unfiltered": ratios(rounds, ours, lambda took: took[UNFILTERED]),
                "scan": ratios(rounds, ours, lambda took: least_scan(choices, took)),
                "bound": ratios(rounds, ours, lambda took: bound(choices, took))}
    if forced:
        compared["forced"] = ratios(rounds, ours, lambda took: took[forced])
    if peer:
        compared["peer"] = ratios(rounds, lambda took: took[peer], ours)
    entries = [{**choice, "us": spread(list(times(rounds, name).values()))} for name, choice in choices.items()]
    return {**about, "forced": forced, "peer": peer, "ratios": compared, "entries": entries, "rounds": rounds}


def entry(cell, name):
    return next(e for e in cell["entries"] if e["name"] == name)


def excludes(cell):
    return cell["name"].startswith("all but")


def costs(lines):
    """Milliseconds of making each kind of filter."""
    made = {}
    for line in lines:
        made.setdefault(line["made"], {"allowed": line["allowed"], "ms": []})["ms"].append(line["ms"])
    return [{"made": name, "allowed": of["allowed"], "ms": spread(of["ms"])} for name, of in made.items()]


def cell_facts(cell):
    name, found = cell["name"], cell["ratios"]
    facts = [fact(f"{name}: recall", 0.95, entry(cell, OURS)["recall"], True),
             fact(f"{name}: recall where 0.95 is asked for", TUNED_LEAST, entry(cell, TUNED)["recall"], True),
             fact(f"{name}: results a query", cell["wanted"], entry(cell, OURS)["results"], True)]
    if excludes(cell):
        return facts + [fact(f"{name}: over no filter", EXCLUDED_MOST, found["unfiltered"]["median"], False)]
    if "forced" in found:
        facts.append(fact(f"{name}: over {cell['forced']}, the cheapest forced", FORCED_MOST,
                          found["forced"]["median"], False))
    facts.append(fact(f"{name}: over min(4x unfiltered, 1.25x scan) + 5 us", 1, found["bound"]["median"], False))
    if "peer" in found:
        facts.append(fact(f"{name}: {cell['peer']} over ours", PEERS_LEAST, found["peer"]["median"], True))
    return facts


def facts(record):
    """All targets. A cell that no peer reaches has none beside them."""
    making = next(c for c in record["costs"] if "1,000,000 ids" in c["made"] and "list" in c["made"])
    return [f for cell in record["cells"] for f in cell_facts(cell)] + \
        [fact(f"making a filter of {making['made']}, ms", MAKING_MOST_MS, making["ms"]["median"], False)]


def strategies(of):
    """The strategies that the queries ended with, as "walk 93 %"."""
    shares = {name: share for name, share in of.get("strategies", {}).items() if share > 0}
    if list(shares.values()) == [1]:
        return next(iter(shares))
    return ", ".join(f"{name} {share * 100:.0f} %" for name, share in sorted(shares.items(), key=lambda s: -s[1]))


def best_peer(cell):
    """(name, µs) of the fastest peer that reaches the recall, or how near the nearest comes."""
    if cell["peer"]:
        return cell["peer"], entry(cell, cell["peer"])["us"]["median"]
    reach = max((e for e in cell["entries"] if e["kind"] == "peer"), key=lambda e: e["recall"], default=None)
    return (f"none ({reach['name']} {reach['recall']:.2f})", reach["us"]["median"]) if reach else ("-", 0)


def reduced(record):
    """A record without single rounds, and without the settings tried that were not taken."""
    return {**record, "cells": [{**{key: value for key, value in cell.items() if key != "rounds"},
                                 "entries": [{key: value for key, value in of.items() if key != "tried"}
                                             for of in cell["entries"]]} for cell in record["cells"]]}


def line(cell):
    """One cell in a line, as the run goes."""
    ours, of = entry(cell, OURS), cell["ratios"]
    told = [f"{word} {of[word]['median']:.2f}" for word in ("forced", "unfiltered", "scan", "bound", "peer")
            if of.get(word)]
    return (f"{cell['name']}: {ours['us']['median']:.1f} us, recall {ours['recall']:.3f}, "
            f"{strategies(ours) or 'no strategy'}; {', '.join(told)}")


def table(record):
    about, data = record["machine"], record["data"]
    lines = ["", f"{data['name']}: {data['rows']} x {data['dim']}, {data['metric']}, {about['cpu']}, one core, "
             f"{record['parameters']['queries']} queries a cell, k = {record['parameters']['k']}", "",
             f"{'allowed':24}{'ids':>8}{'us':>9}{'recall':>8}{'evaluations':>13}  {'strategy':30}"
             f"{'/forced':>9}{'/none':>8}{'/scan':>8}{'/bound':>8}{'peer/':>8}  best peer"]
    for cell in record["cells"]:
        ours, of = entry(cell, OURS), cell["ratios"]
        words = [f"{of[word]['median']:8.2f}" if of.get(word) else f"{'-':>8}"
                 for word in ("forced", "unfiltered", "scan", "bound", "peer")]
        name, us = best_peer(cell)
        lines.append(f"{cell['name']:24}{cell['allowed']:8}{ours['us']['median']:9.1f}{ours['recall']:8.3f}"
                     f"{ours['evaluations']:13.0f}  {strategies(ours):30} {''.join(words)}  {name}, {us:.0f} us")
    lines += ["", "us a query, its recall in brackets where it does not reach 0.95:"]
    names = [e["name"] for e in record["cells"][0]["entries"]]
    lines.append(f"{'allowed':24}" + "".join(f"{name[:17]:>18}" for name in names))
    for cell in record["cells"]:
        words = []
        for name in names:
            e = entry(cell, name)
            words.append(f"{e['us']['median']:.1f}" + ("" if e["reached"] else f" ({e['recall']:.2f})"))
        lines.append(f"{cell['name']:24}" + "".join(f"{word:>18}" for word in words))
    lines += ["", "making a filter, ms:"] + [f"{c['made']:32}{span(c['ms'])}" for c in record["costs"]]
    met = sum(f["met"] for f in record["targets"])
    missed = [f for f in record["targets"] if not f["met"]]
    return "\n".join(lines + ["", f"targets: {met} of {len(record['targets'])} reached"] + verdicts(missed)) + "\n"


def markdown(record):
    """The table for docs/notebook/filters.md."""
    lines = [f"| {record['data']['name']}, {record['data']['rows']:,} vectors | "
             "µs (recall) | Comparisons | Strategy | Over the cheapest forced | Over no filter | "
             "Over a scan of the allowed | Best peer | Peer over ours |",
             "|---|---:|---:|---|---:|---:|---:|---|---:|"]
    for cell in record["cells"]:
        ours, of = entry(cell, OURS), cell["ratios"]
        words = [f"{of[word]['median']:.2f}" if of.get(word) else "-"
                 for word in ("forced", "unfiltered", "scan")]
        name, us = best_peer(cell)
        peer = f"{of['peer']['median']:.1f}" if of.get("peer") else "-"
        lines.append(f"| {cell['name']} | {ours['us']['median']:.1f} ({ours['recall']:.3f}) | "
                     f"{ours['evaluations']:,.0f} | {strategies(ours)} | {' | '.join(words)} | "
                     f"{name}, {us:,.0f} µs | {peer} |")
    return "\n".join(lines)


def write(root):
    tables = [markdown(json.loads(path.read_text())) for path in sorted(root.glob("bench/results/filters-*.json"))
              if not path.stem.endswith("-part")]
    page = root / "docs/notebook/filters.md"
    page.write_text(between(page.read_text(), "filters", "\n\n".join(tables)))


def main():
    if sys.argv[1:] == ["--write"]:
        return write(ROOT)
    for path in sys.argv[1:]:
        print(markdown(json.loads(pathlib.Path(path).read_text())) + "\n")


if __name__ == "__main__":
    main()
