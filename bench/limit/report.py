"""From the lines the program printed to bounds, ratios, a table and the target."""

import statistics

from setting import fact, span, spread, verdicts

# The share of the whole query time that the evaluations alone would take.
TARGET = 0.75
JUDGED = "array"

# The ways in which evaluations are measured. The target is judged by the first.
BOUNDS = {
    "array": "rows drawn at random from all of the index's, in the walk's groups, asked for one group ahead",
    "array_far": "the same, asked for 32 rows ahead or more: as if a walk knew long before where it will go",
    "array_links": "as the first, with a list of links read for every group, drawn at random too",
    "own": "the walk's own rows in its own order, asked for one group ahead",
    "own_links": "the same with the walk's own lists of links",
    "cache": "rows of 16 KiB, which stay in the first-level cache: the arithmetic alone",
}


def bound_us(evaluations, ns):
    return evaluations * ns / 1e3


def row_of(point, events):
    """One target of one index. A round gives a ratio for each bound; of the least times of all slices there is one."""
    rounds = [e for e in events if e["event"] == "round" and e["target"] == point["target"]]
    least = next(e for e in events if e["event"] == "least" and e["target"] == point["target"])

    def ratio(times, name):
        return bound_us(point["evaluations"], times[name]) / times["query_us"]

    return {**{name: point[name] for name in ("target", "recall", "ef", "stop", "rerank", "evaluations", "expansions")},
            "reached": point["limit"] == "none",
            "group": point["traced"] / point["traced_expansions"],
            "query_us": spread([r["query_us"] for r in rounds]),
            "ns": {name: statistics.median(r[name] for r in rounds) for name in BOUNDS},
            "bound_us": {name: statistics.median(bound_us(point["evaluations"], r[name]) for r in rounds)
                         for name in BOUNDS},
            "ratio": {name: spread([ratio(r, name) for r in rounds]) for name in BOUNDS},
            "ratio_of_least": {name: ratio(least, name) for name in BOUNDS}}


def summarise(events):
    """Sums up the events of one index."""
    about = next(e for e in events if e["event"] == "about")
    return {**{name: value for name, value in about.items() if name != "event"},
            "points": [row_of(e, events) for e in events if e["event"] == "point"]}


def name_of(index):
    return f"{index['codes']} m={index['m']}"


def facts(indexes):
    """Gives facts of the targets that tuning reached. Times of the others belong to another recall."""
    return [fact(f"{name_of(index)}, recall@10 {row['target']:.2f}, share of the query", TARGET,
                 row["ratio"][JUDGED]["median"], True)
            for index in indexes for row in index["points"] if row["reached"]]


def table(about, indexes):
    lines = ["", f"{about['data']['name']}: {indexes[0]['n']} x {indexes[0]['dim']}, {about['parameters']['metric']}, "
             f"{about['machine']['cpu']}, {indexes[0]['isa']}, one query at a time, "
             f"{'processor' if about['parameters']['clock'] == 'cpu' else 'wall'} time",
             "", f"{'index':10}{'recall@10':>10}{'ef':>6}{'stop':>7}{'evaluations':>13}{'a group':>9}{'ns':>7}"
             f"{'bound us':>10}{'query us':>10}   ratio, median (min to max)"]
    for index in indexes:
        for row in index["points"]:
            lines.append(f"{name_of(index):10}{row['recall']:10.4f}{row['ef']:6}{row['stop']:7.3f}"
                         f"{row['evaluations']:13.0f}{row['group']:9.1f}{row['ns'][JUDGED]:7.2f}"
                         f"{row['bound_us'][JUDGED]:10.1f}{row['query_us']['median']:10.1f}   "
                         f"{span(row['ratio'][JUDGED])}"
                         f"{'' if row['reached'] else '   (recall %.2f is out of reach)' % row['target']}")
    lines += ["", "ns an evaluation, and the ratio with it:",
              f"{'index':10}{'recall@10':>10}" + "".join(f"{name:>18}" for name in BOUNDS)]
    for index in indexes:
        for row in index["points"]:
            lines.append(f"{name_of(index):10}{row['recall']:10.4f}" +
                         "".join(f"{row['ns'][name]:10.2f}  {row['ratio'][name]['median']:6.3f}" for name in BOUNDS))
    lines += [""] + [f"{name:12} {meaning}" for name, meaning in BOUNDS.items()]
    return "\n".join(lines + [""] + verdicts(about["targets"])) + "\n"
