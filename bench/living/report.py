"""From the steps of runbooks to means, ratios with a fresh build, verdicts and tables."""

import statistics

from books import CHURN
from executed import is_narrow
from setting import fact, spread, verdicts

DIGITS = 4  # of a kept float
CHANGES = ("insert", "delete", "replace")
RECALL = 0.99       # mean recall@10 over the searches of a runbook
RECALL_LOST = 0.003  # of a fresh build's at the same depth
P99, P999 = 1.3, 2.0  # beside a writer, over those of an idle index
REQUESTS = 1.2  # p99 of requests while items change, over idle
ADDS = 2.0  # rows a second by two threads, over hnswlib's
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
    """Seconds of all changes between one search and the next, in order, from the first search on."""
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


def lost_recall(rows, number):
    """(mean over the comparisons, the most beyond two standard errors) of recall lost to a fresh build."""
    here = [row["depths"][number] for row in rows]
    losses = [one["fresh_recall"] - one["recall"] for one in here]
    return statistics.mean(losses), max(loss - 2 * one["error"] for loss, one in zip(losses, here))


def beside_fresh(rows, generations):
    """Sums the comparisons up. The first one, before any delete, counts only if it is alone.
    time, bytes: the most over a fresh build's; rebuild_share: median seconds of a generation over a fresh build's, None
    without generations."""
    after = rows[1:] or rows
    depths = []
    for number, one in enumerate(after[0]["depths"]):
        mean, worst = lost_recall(after, number)
        depths.append({"depth": one["depth"], "lost_mean": mean, "lost_most": worst,
                       "time": max(row["depths"][number]["ratio"]["median"] for row in after),
                       "time_last": after[-1]["depths"][number]["ratio"]["median"]})
    return {"depths": depths, "lost": after[-1]["fresh_lost"], "bytes": most(row["bytes"] and row["bytes"] / row["fresh_bytes"] for row in after),
            "rebuild_share": statistics.median(generations) / statistics.median(row["build_s"] for row in after)
            if generations else None}


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
    return {**found, "compares": rows, "fresh": beside_fresh(rows, generations if len(rows) > 1 else [])}


def columns(rows):
    """Rows of one form as {field: its values}, or one value where all are the same; deeper rows alike."""
    def column(values):
        if isinstance(values[0], dict):
            return columns(values)
        if isinstance(values[0], list):
            return [columns(list(one)) for one in zip(*values)]
        return values[0] if len(set(values)) == 1 else values

    return {field: column([row[field] for row in rows]) for field in rows[0]}


def rounded(value):
    """Floats of DIGITS digits, wherever they lie."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def kept_row(row):
    """A comparison without what `fresh` sums up or other rows have."""
    depths = [{"recall": one["recall"], "fresh_recall": one["fresh_recall"], "error": one["error"],
               "time": one["ratio"]["median"]} for one in row["depths"]]
    return {**{key: row[key] for key in ("bytes", "fresh_bytes", "build_s", "lost", "fresh_lost")}, "depths": depths}


def small(record):
    """The record that the tree keeps: without single searches, single comparisons and the ladders that were tried.
    Comparisons are columns, and floats short."""
    def book_of(found):
        found = dict(found)
        if "depths" in found:
            found["depths"] = [{key: value for key, value in one.items() if key != "series"} for one in found["depths"]]
        rows = found.pop("compares", [])
        return {**found, "compares": columns([kept_row(row) for row in rows])} if len(rows) > 1 else found

    libraries = [{**{key: {field: told for field, told in value.items() if field != "tried"}
                     if key in ("book", "churn") else value for key, value in library.items()},
                  "books": {name: book_of(found) for name, found in library["books"].items()}}
                 for library in record.get("libraries", [])]
    return rounded({**record, **({"libraries": libraries} if "libraries" in record else {})})


# ---------------------------------------------------------------------------------------------------------------------
# Beside a writer
# ---------------------------------------------------------------------------------------------------------------------

TAILS = ("p50_us", "p99_us", "p999_us")


def rounds_of(events, kind, library, field, **fields):
    """{round: value} of one library."""
    return {event["round"]: event[field] for event in of(events, kind)
            if event["library"] == library and all(event[name] == value for name, value in fields.items())}


def ratios(values, over):
    """The spread of the ratios of the rounds that both have; None: there is none."""
    found = [values[number] / over[number] for number in values if number in over]
    return spread(found) if found else None


def spread_of(values):
    return spread(list(values.values())) if values else None


def tails(events, library):
    """Times of single queries idle, beside the writer of another index, and beside ours; the ratios of a round; and
    changes a second."""
    times = {kind: {tail: rounds_of(events, kind, library, tail) for tail in TAILS}
             for kind in ("idle", "apart", "beside")}
    changed = rounds_of(events, "beside", library, "changed")
    wrote = rounds_of(events, "beside", library, "wrote_s")
    return {**{kind: {tail: spread_of(values) for tail, values in found.items()} for kind, found in times.items()},
            "ratio": {tail: ratios(times["beside"][tail], times["idle"][tail]) for tail in TAILS},
            "over_apart": {tail: ratios(times["beside"][tail], times["apart"][tail]) for tail in TAILS},
            "changes_per_s": ratios(changed, wrote)}


def adds(events, library):
    """Rows a second by two threads, for each way of calling, and over those of hnswlib in the same round."""
    peer = rounds_of(events, "adds", "hnswlib", "rows_per_s", how="one")
    found = {}
    for how in ("many", "one"):
        speeds = rounds_of(events, "adds", library, "rows_per_s", how=how)
        if speeds:
            found[how] = {"rows_per_s": spread_of(speeds), "over_hnswlib": ratios(speeds, peer)}
    return found


def beside(events):
    """A row for each library."""
    rows = []
    for library in dict.fromkeys(event["library"] for event in events):
        failed = [event["why"] for event in of(events, "failed") if event["library"] == library]
        ef = [{"ef": event["ef"], "recall": event["recall"]} for event in of(events, "ef")
              if event["library"] == library]
        rows.append({"library": library, **({"failed": failed[0]} if failed else {}), **(ef[0] if ef else {}),
                     **tails(events, library), "adds": adds(events, library)})
    return rows


def requests(events):
    """Times of requests by what changed meanwhile, and over those of the idle window of the same round."""
    kinds = list(dict.fromkeys(event["kind"] for event in events))
    times = {kind: {tail: {event["round"]: event[tail] for event in events if event["kind"] == kind}
                    for tail in ("p50_us", "p99_us")} for kind in kinds}
    return {"kinds": {kind: {**{tail: spread_of(values) for tail, values in found.items()},
                             "ratio": {tail: ratios(values, times["idle"][tail]) for tail, values in found.items()},
                             "updates_per_s": spread([event["updates_per_s"] for event in events
                                                      if event["kind"] == kind])}
                      for kind, found in times.items()}}


# ---------------------------------------------------------------------------------------------------------------------
# Verdicts
# ---------------------------------------------------------------------------------------------------------------------

def churn_facts(name, found):
    facts, fresh = [], found["fresh"]
    for one in fresh["depths"]:
        at = f"{name}, depth {one['depth']}"
        facts += [fact(f"{at}: recall lost, mean of generations", RECALL_LOST, one["lost_mean"], False),
                  fact(f"{at}: the most lost, beyond two errors", RECALL_LOST, one["lost_most"], False),
                  fact(f"{at}: time a query over a fresh build's, most", TIME, one["time"], False)]
    facts.append(fact(f"{name}: bytes over a fresh build's, most", BYTES, fresh["bytes"], False))
    facts.append(fact(f"{name}: unreachable vectors, most", 0, found["unreachable"], False))
    if name == "generations":  # a turnover adds half of the vectors, which no rebuild's quarter can hold
        facts.append(fact(f"{name}: seconds of one over a rebuild's", REBUILD, fresh["rebuild_share"], False))
    return facts


def beside_facts(found):
    facts = []
    for name, tail, bound in (("p99", "p99_us", P99), ("p99.9", "p999_us", P999)):
        if found["ratio"][tail]:
            facts.append(fact(f"{name} beside a writer over idle", bound, found["ratio"][tail]["median"], False))
    return facts + [fact(f"adds by 2 threads, {how} a call, over hnswlib's", ADDS, one["over_hnswlib"]["median"], True)
                    for how, one in found["adds"].items() if one["over_hnswlib"]]


def request_facts(found):
    return [fact(f"p99 of requests while {kind} change over idle", REQUESTS, one["ratio"]["p99_us"]["median"], False)
            for kind, one in found.get("kinds", {}).items() if kind != "idle"]


def facts(record):
    """The verdicts on our index."""
    beside_it = record.get("beside", {})
    found = [one for row in beside_it.get("libraries", []) if row["library"] == "shortlist"
             for one in beside_facts(row)] + request_facts(beside_it.get("requests", {}))
    for library in record.get("libraries", []):
        if library["library"] != "shortlist":
            continue
        for name, one in library["books"].items():
            if "failed" in one:
                found.append(fact(f"{name}: searches done", one["searches"], one["searches_done"], True))
            elif name in CHURN:
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


def fresh_lines(name, record):
    lines = ["", f"{name}, beside a fresh build of the same vectors: mean of recall lost, most beyond two errors; "
             "largest ratios"]
    for library in record["libraries"]:
        found = library["books"].get(name, {})
        if "compares" not in found:
            continue
        last, fresh = found["compares"][-1], found["fresh"]
        for one in fresh["depths"]:
            lines.append(f"  {library['library']:10}{one['depth']:6}  recall lost {one['lost_mean']:7.4f} "
                         f"{one['lost_most']:7.4f}   time {one['time']:6.3f}   bytes {shown(fresh['bytes'], '.2f')}   "
                         f"generation over build {shown(fresh['rebuild_share'], '.3f')}   lost {last['lost']} "
                         f"(fresh {last['fresh_lost']}) of {last['sampled']}")
    return lines


def three(spreads):
    """Medians of the tails; None: there are none."""
    return " ".join(shown(spreads[tail] and spreads[tail]["median"], "9.1f").rjust(9) for tail in TAILS)


def beside_lines(record):
    about = record["beside"]
    if "why" in about:
        return ["", f"beside a writer: {about['why']}"]
    lines = ["", f"beside a writer, {about['live']} live vectors, ef for recall {about['recall']}: p50, p99, p99.9 in µs",
             "  (apart: the writer changes another index)",
             f"  {'':10}{'ef':>5}  {'idle':>29}  {'apart':>29}  {'beside':>29}  {'p99':>6}{'p99.9':>7}{'changes/s':>10}   "
             f"adds by {about['threads']} threads, rows/s (over hnswlib's)"]
    for row in about["libraries"]:
        if "failed" in row:
            lines.append(f"  {row['library']:10}{row['failed']}")
            continue
        ratio = [shown(row["ratio"][tail] and row["ratio"][tail]["median"], ".2f") for tail in TAILS[1:]]
        added = ", ".join(f"{how} {one['rows_per_s']['median']:.0f}" +
                          (f" ({one['over_hnswlib']['median']:.2f})" if one["over_hnswlib"] else "")
                          for how, one in row["adds"].items())
        changes = shown(row["changes_per_s"] and row["changes_per_s"]["median"], ".0f")
        times = "  ".join(three(row[kind]) for kind in ("idle", "apart", "beside"))
        lines.append(f"  {row['library']:10}{row['ef']:5}  {times}  {ratio[0]:>6}"
                     f"{ratio[1]:>7}{changes:>10}   {added}")
    for kind, one in about.get("requests", {}).get("kinds", {}).items():
        lines.append(f"  requests, {kind:6} {one['updates_per_s']['median']:6.0f} updates/s   p50 "
                     f"{one['p50_us']['median']:8.1f}   p99 {one['p99_us']['median']:8.1f}   p99 over idle "
                     f"{one['ratio']['p99_us']['median']:.3f}")
    return lines + ([] if about["one_handle"] else ["  ours takes no change beside searches yet: idle alone"])


def slow_kernels(record):
    """Names libraries whose vector instructions are next to all of 128 bits."""
    told = [(library["library"], library.get("book", {}).get("executed", {"why": "not counted"}))
            for library in record.get("libraries", [])]
    return sorted({name for name, counts in told if "why" not in counts and is_narrow(counts)})


def table(record):
    about = record["data"]
    lines = ["", f"{about['name']}, {about['dim']} dimensions, {about['metric']}, m {record['parameters']['m']}",
             f"{record['machine']['cpu']}, load average at the start {record['machine']['load_average']:.2f}",
             "insert, delete, replace in µs a vector; tidy: upkeep after deletes; MB by the library's own count"]
    for name in record.get("runbooks", {}):
        lines += book_lines(name, record)
        lines += fresh_lines(name, record)
    lines += beside_lines(record) if "beside" in record else []
    slow = slow_kernels(record)
    lines += ["", f"without wide kernels: {', '.join(slow)}"] if slow else []
    return "\n".join([*lines, "", *verdicts(record["targets"])])
