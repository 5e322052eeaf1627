"""From the steps of runbooks to means, ratios with a fresh build, verdicts and tables."""

import statistics

from executed import is_narrow
from setting import fact, spread, verdicts

CHANGES = ("insert", "delete", "replace")
RECALL = 0.99       # mean recall@10 over the searches of a runbook
RECALL_LOST = 0.003  # of a fresh build's at the same depth
TIME, BYTES, REBUILD = 1.1, 1.15, 0.25  # of a fresh build's: time a query, bytes, and seconds of a generation


def least_depth(tried, target):
    """The first depth that reaches the target, and else the best; with its recall."""
    enough = [one for one in tried if one["recall"] >= target]
    chosen = enough[0] if enough else max(tried, key=lambda one: one["recall"])
    return {"target": target, "depth": chosen["depth"], "recall": chosen["recall"], "reached": bool(enough)}


def of(events, *kinds):
    return [event for event in events if event["event"] in kinds]


def seconds(event, clock):
    """(of the change, of the upkeep after it)."""
    return (event["cpu_s"], event["tidy_cpu_s"]) if clock == "cpu" else (event["s"], event["tidy_s"])


def costs(events, clock):
    """{kind: {"s", "vectors"}} of all changes, and the upkeep."""
    found = {kind: {"s": sum(seconds(event, clock)[0] for event in of(events, kind)),
                    "vectors": sum(event["vectors"] for event in of(events, kind))} for kind in CHANGES}
    return {**{kind: cost for kind, cost in found.items() if cost["vectors"]},
            "tidy": {"s": sum(seconds(event, clock)[1] for event in of(events, *CHANGES))}}


def per_depth(events):
    """A row for each depth: recall over the searches, and the time of all its queries."""
    searched, rows = of(events, "search", "compare"), []
    for number, one in enumerate(of(events, "all")[0]["searches"]):
        recalls = [event["searches"][number]["recall"] for event in searched]
        rows.append({**one, "recall": statistics.mean(recalls), "least": min(recalls), "last": recalls[-1],
                     "series": [round(recall, 4) for recall in recalls]})
    return rows


def generation_seconds(events, clock):
    """Seconds of all changes between one search and the next, in order. What comes before the first search is left
    out."""
    sums, since = [], 0.0
    for event in events:
        if event["event"] in CHANGES:
            since += sum(seconds(event, clock))
        elif event["event"] in ("search", "compare"):
            sums.append(since)
            since = 0.0
    return sums[1:]


def compares(events, clock):
    """A row for each comparison with a fresh build. ratio: time a query over the fresh build's of the same round."""
    rows = []
    for event in of(events, "compare"):
        fresh = event["fresh"]
        depths = [{"depth": one["depth"], "recall": one["recall"], "fresh_recall": one["fresh_recall"],
                   "error": one["error"], "ratio": spread([here / there for here, there in one["turns"][clock]])}
                  for one in event["searches"]]
        rows.append({"step": event["step"], "live": event["live"], "depths": depths,
                     "bytes": event["bytes"], "fresh_bytes": fresh["bytes"],
                     "build_s": fresh["build_cpu_s" if clock == "cpu" else "build_s"],
                     "unreachable": event["unreachable"], "fresh_unreachable": fresh["unreachable"],
                     "lost": event["lost"]["lost"], "fresh_lost": fresh["lost"]["lost"],
                     "sampled": event["lost"]["sampled"]})
    return rows


def most(values):
    """The largest, of those that are known; None: none is."""
    known = [value for value in values if value is not None]
    return max(known) if known else None


def book(events, clock, searches):
    """One library's way through one runbook of so many searches."""
    searched = of(events, "search", "compare")
    if events[-1]["event"] == "failed":
        return {"failed": events[-1]["why"], "searches_done": len(searched), "searches": searches}
    everything, generations = of(events, "all")[0], generation_seconds(events, clock)
    found = {"depths": per_depth(events), "costs": costs(events, clock), "lost": everything["lost"],
             "unreachable": most(event["unreachable"] for event in searched),
             "bytes": {"last": searched[-1]["bytes"], "most": most(event["bytes"] for event in searched)},
             "resident": most(event["resident"] for event in searched)}
    rows = compares(events, clock)
    return {**found, "compares": rows, "generation_s": spread(generations)} if rows else found


# ---------------------------------------------------------------------------------------------------------------------
# Verdicts
# ---------------------------------------------------------------------------------------------------------------------

def after(rows):
    """The comparisons but the first, which is of the index before any delete."""
    return rows[1:]


def lost_recall(rows, number):
    """(mean over the comparisons, the most beyond two standard errors) of recall lost to a fresh build."""
    here = [row["depths"][number] for row in after(rows)]
    losses = [one["fresh_recall"] - one["recall"] for one in here]
    return statistics.mean(losses), max(loss - 2 * one["error"] for loss, one in zip(losses, here))


def rebuild_share(found):
    """Median seconds of a generation over the median of the fresh builds after the first."""
    return found["generation_s"]["median"] / statistics.median(row["build_s"] for row in after(found["compares"]))


def churn_facts(name, found):
    rows, facts = found["compares"], []
    for number, one in enumerate(found["depths"]):
        mean, worst = lost_recall(rows, number)
        ratio = max(row["depths"][number]["ratio"]["median"] for row in after(rows))
        at = f"{name}, depth {one['depth']}"
        facts += [fact(f"{at}: recall lost, mean of generations", RECALL_LOST, mean, False),
                  fact(f"{at}: the most lost, beyond two errors", RECALL_LOST, worst, False),
                  fact(f"{at}: time a query over a fresh build's, most", TIME, ratio, False)]
    facts.append(fact(f"{name}: bytes over a fresh build's, most", BYTES,
                      max(row["bytes"] / row["fresh_bytes"] for row in after(rows)), False))
    facts.append(fact(f"{name}: unreachable vectors, most", 0, found["unreachable"], False))
    if name == "generations":  # a turnover adds half of the vectors, which no rebuild's quarter can hold
        facts.append(fact(f"{name}: seconds of one over a rebuild's", REBUILD, rebuild_share(found), False))
    return facts


def facts(record):
    """Of ours alone."""
    found = []
    for library in record["libraries"]:
        if library["library"] != "shortlist":
            continue
        for name, one in library["books"].items():
            if "failed" in one:
                found.append(fact(f"{name}: searches done", one["searches"], one["searches_done"], True))
            elif "compares" in one:
                found += churn_facts(name, one)
            else:
                found.append(fact(f"{name}: mean recall@10", RECALL, one["depths"][0]["recall"], True))
                found.append(fact(f"{name}: unreachable vectors, most", 0, one["unreachable"], False))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------------------------------------------------

def shown(value, form, none="-"):
    return none if value is None else format(value, form)


def mb(value):
    return None if value is None else value / 1e6


def micro(cost):
    """Microseconds a vector of a change; None: there was none."""
    return 1e6 * cost["s"] / cost["vectors"] if cost else None


def book_lines(name, record):
    lines = ["", f"{name}: {record['runbooks'][name]['operations']} operations",
             f"  {'':10}{'depth':>6}{'recall':>8}{'least':>8}{'µs':>8}{'p99':>8}{'insert':>8}{'delete':>8}"
             f"{'replace':>8}{'tidy s':>8}{'MB':>8}{'most':>8}{'process':>8}{'unreach':>8}{'lost':>6}"]
    for library in record["libraries"]:
        found = library["books"].get(name)
        if not found or "failed" in found:
            lines.append(f"  {library['library']:10}{(found or library).get('failed', '')}")
            continue
        spent = found["costs"]
        for one in found["depths"]:
            lines.append(
                f"  {library['library']:10}{one['depth']:6}{one['recall']:8.4f}{one['least']:8.4f}{one['us']:8.1f}"
                f"{one['p99_us']:8.1f}" + "".join(f"{shown(micro(spent.get(kind)), '.1f'):>8}" for kind in CHANGES) +
                f"{spent['tidy']['s']:8.2f}{shown(mb(found['bytes']['last']), '.1f'):>8}"
                f"{shown(mb(found['bytes']['most']), '.1f'):>8}{shown(mb(found['resident']), '.1f'):>8}"
                f"{shown(found['unreachable'], 'd'):>8}{found['lost']['lost']:6}")
    return lines


def churn_lines(name, record):
    lines = ["", f"{name}, beside a fresh build of the same vectors: mean of recall lost, most beyond two errors; "
             "ratios at the end"]
    for library in record["libraries"]:
        found = library["books"].get(name, {})
        if "compares" not in found:
            continue
        last = found["compares"][-1]
        for number, one in enumerate(found["depths"]):
            mean, worst = lost_recall(found["compares"], number)
            size = last["bytes"] / last["fresh_bytes"] if last["bytes"] else None
            lines.append(f"  {library['library']:10}{one['depth']:6}  recall lost {mean:7.4f} {worst:7.4f}   "
                         f"time {last['depths'][number]['ratio']['median']:6.3f}   bytes {shown(size, '.2f')}   "
                         f"generation over build {rebuild_share(found):.3f}   lost {last['lost']} "
                         f"(fresh {last['fresh_lost']}) of {last['sampled']}")
    return lines


def slow_kernels(record):
    """Names libraries whose vector instructions are next to all of 128 bits."""
    told = [(library["library"], library[kind]["executed"]) for library in record["libraries"]
            for kind in ("book", "churn") if kind in library]
    return sorted({name for name, counts in told if "why" not in counts and is_narrow(counts)})


def table(record):
    about = record["data"]
    lines = ["", f"{about['name']}, {about['dim']} dimensions, {about['metric']}, m {record['parameters']['m']}",
             f"{record['machine']['cpu']}, load average at the start {record['machine']['load_average']:.2f}",
             "insert, delete, replace in µs a vector; tidy: upkeep after deletes; MB by the library's own count"]
    for name in record["runbooks"]:
        lines += book_lines(name, record)
        if any("compares" in library["books"].get(name, {}) for library in record["libraries"]):
            lines += churn_lines(name, record)
    slow = slow_kernels(record)
    lines += ["", f"without wide kernels: {', '.join(slow)}"] if slow else []
    return "\n".join([*lines, "", *verdicts(record["targets"])])
