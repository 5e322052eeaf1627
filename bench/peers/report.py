"""From the rounds of a race to speeds, ratios, tables and the verdicts on what was to be reached."""

import statistics

from setting import fact, span, spread, verdicts

MODES = ("one", "batch")
NATIVE = "native"  # one query a call without Python, measured where a library has a program for it
# The targets, in times as fast. A million rows and more may be a quarter below.
BEST_SET = "glove100"
BEST_ONE, BEST_SMALL, BEST_BATCH = 4.0, 3.0, 2.5  # against the best of all on glove100
SMALL_PEER, SMALL_BYTES = "LVQ4x8", 328.0  # the peer whose bytes bound BEST_SMALL; its bytes on glove100 as published
SIZE_ONE, HALF_ONE, OTHER_BATCH = 2.0, 1.5, 1.5  # on every other set
NARROW_ONE, NARROW_PEER = 1.5, "hnswlib"  # with ours held to AVX2, at half the bytes of the peer's best
LARGE_ROWS, LARGE_SHARE = 1_000_000, 0.75


def speeds(events):
    """{(mode, target): {name: {"qps": spread, "rounds": {round: qps}, "recall": of the measured queries}}}."""
    found = {}
    for event in events:
        cell = found.setdefault((event["mode"], event["target"]), {})
        mine = cell.setdefault(event["name"], {"rounds": {}})
        mine["rounds"][event["round"]] = event["qps"]
        if "recall" in event:
            mine["recall"] = event["recall"]
        if "p99_us" in event:
            mine.setdefault("p99s", []).append(event["p99_us"])
    for cell in found.values():
        for mine in cell.values():
            mine["qps"] = spread(list(mine["rounds"].values()))
            mine["p99_us"] = statistics.median(mine["p99s"]) if "p99s" in mine else None
    return found


def best(cell, names):
    """Gives the name with the greatest median speed, or None if none took part."""
    present = [name for name in names if name in cell]
    return max(present, key=lambda name: cell[name]["qps"]["median"], default=None)


def ratio(cell, ours, theirs):
    """The median over the rounds of our speed over theirs in the same round."""
    common = cell[ours]["rounds"].keys() & cell[theirs]["rounds"].keys()
    return statistics.median(cell[ours]["rounds"][r] / cell[theirs]["rounds"][r] for r in common)


def against(cell, ours, theirs):
    """Our best over their best; None where no peer took part, 0 where none of ours did."""
    their_best, our_best = best(cell, theirs), best(cell, ours)
    if their_best is None:
        return None
    reached = ratio(cell, our_best, their_best) if our_best else 0.0
    return {"ours": our_best, "theirs": their_best, "ratio": reached}


def no_smaller(cell, ours, theirs, size):
    """Beside each peer our best of no more than its bytes, where there is one of so few; the least of these ratios."""
    found = []
    for peer in theirs:
        fitting = [mine for mine in ours if size[mine] <= size[peer]]
        if peer in cell and fitting:
            found.append(against(cell, fitting, [peer]))
    return min(found, key=lambda f: f["ratio"], default=None)


def disturbed(events):
    """The share of the timings, by the wall clock, in which the core did something else for a twentieth or more."""
    both = [(event.get("wall_qps", event["qps"]), event["cpu_qps"]) for event in events if "cpu_qps" in event]
    return sum(wall < 0.95 * cpu for wall, cpu in both) / len(both) if both else 0.0


def at_half(cell, ours, theirs, size):
    """Our best at half the bytes or less of the best peer of all, over that peer."""
    leader = best(cell, theirs)
    if leader is None:
        return None
    return against(cell, [mine for mine in ours if size[mine] <= 0.5 * size[leader]], [leader])


def comparisons(data, entries, found, isa):
    """(name, bound, {"ours", "theirs", "ratio"}) for everything that is to be reached on this data set."""
    taking = [entry for entry in entries if not entry.get("skip")]
    size = {entry["name"]: entry["bytes_per_vector"] for entry in taking}
    ours = [entry["name"] for entry in taking if entry["ours"]]
    theirs = [entry["name"] for entry in taking if not entry["ours"]]
    share = LARGE_SHARE if data["rows"] >= LARGE_ROWS else 1.0
    small = next((size[name] for name in theirs if SMALL_PEER in name), SMALL_BYTES)
    lines = []
    judged = {key: cell for key, cell in found.items() if key[0] in MODES}
    for (mode, target), cell in sorted(judged.items(), key=lambda item: (MODES.index(item[0][0]), item[0][1])):
        at = f"{mode}, recall@10 {target}"
        if isa:
            held = [name for name in theirs if name.startswith(NARROW_PEER + " ")]
            if mode == "one":
                lines.append((f"{at}, {isa} against {NARROW_PEER} at half its bytes", NARROW_ONE,
                              at_half(cell, ours, held, size)))
        elif data["name"] == BEST_SET and mode == "one":
            lines.append((f"{at}, best of all", BEST_ONE, against(cell, ours, theirs)))
            lines.append((f"{at}, ours of at most {small:.0f} bytes", BEST_SMALL,
                          against(cell, [mine for mine in ours if size[mine] <= small], theirs)))
        elif mode == "one":
            lines.append((f"{at}, peers of no fewer bytes", SIZE_ONE, no_smaller(cell, ours, theirs, size)))
            lines.append((f"{at}, best of all at half its bytes", HALF_ONE, at_half(cell, ours, theirs, size)))
        else:
            lines.append((f"{at}, best of all", BEST_BATCH if data["name"] == BEST_SET else OTHER_BATCH,
                          against(cell, ours, theirs)))
    return [(name, bound * share, pair) for name, bound, pair in lines if pair]


def summarise(data, entries, events, isa=""):
    found = speeds(events)
    cells = [{"mode": mode, "target": target,
              "contenders": {name: {"qps": mine["qps"], "recall": mine.get("recall"), "p99_us": mine["p99_us"]}
                             for name, mine in cell.items()}}
             for (mode, target), cell in sorted(found.items())]
    targets = []
    for name, bound, pair in comparisons(data, entries, found, isa):
        targets.append({**fact(name, bound, pair["ratio"], True), "ours": pair["ours"], "theirs": pair["theirs"]})
    return {"cells": cells, "targets": targets, "disturbed": disturbed(events)}


def calls(events):
    """{library: {"variant", "us": spread}} of the rounds of calls.py."""
    found = {}
    for event in events:
        found.setdefault(event["engine"], {"variant": event["variant"], "rounds": []})["rounds"].append(event["us"])
    return {engine: {"variant": mine["variant"], "us": spread(mine["rounds"])} for engine, mine in found.items()}


def builds(entries, events):
    """{variant: seconds, processor seconds, ratio} of a race of builds; the ratio is to our first variant's seconds of
    the same round."""
    rounds = {}
    for event in events:
        rounds.setdefault(event["name"], {})[event["round"]] = event
    first = next((entry["name"] for entry in entries if entry["ours"] and entry["name"] in rounds), None)
    ours, found = rounds.get(first, {}), {}
    for name, mine in rounds.items():
        both = [event["build_s"] / ours[number]["build_s"] for number, event in mine.items() if number in ours]
        found[name] = {**{what: spread([event[what] for event in mine.values()]) for what in ("build_s", "cpu_s")},
                       "ratio": spread(both) if both else None}
    return found


def call_us(summary, engine):
    """The median cost of a call, or None."""
    mine = summary.get("calls", {}).get(engine)
    return mine["us"]["median"] if mine else None


def no_native(entries):
    """{why: [libraries]} of those whose variants have no program without Python."""
    found = {}
    for entry in entries:
        if entry.get("no_native") and entry["engine"] not in found.setdefault(entry["no_native"], []):
            found[entry["no_native"]].append(entry["engine"])
    return found


def cpu(machine):
    """Gives the name of the CPU, and its generation."""
    return machine["cpu"] + (f" ({machine['generation']})" if machine.get("generation") else "")


def lookup(summary):
    return {(cell["mode"], cell["target"]): cell["contenders"] for cell in summary["cells"]}


def table(about, entries, summary):
    found, data = lookup(summary), about["data"]
    targets = sorted({target for mode, target in found if mode in MODES})
    heads = "".join(f"{mode + ' ' + target:>12}" for mode in MODES for target in targets)
    lines = ["", f"{data['name']}: {data['rows']} x {data['dim']}, {data['metric']}, {cpu(about['machine'])}",
             f"queries a second at recall@10, one pinned core, medians by the {about['parameters']['clock']} clock",
             f"{'':38}{'bytes':>7}{'in mem.':>8}{'build s':>8}{heads}"]
    taking = [entry for entry in entries if not entry.get("skip")]
    for entry in sorted(taking, key=lambda entry: -speed(found, entry["name"], "one", "0.95")):
        cells = "".join(f"{shown(found, entry['name'], mode, target):>12}" for mode in MODES for target in targets)
        lines.append(f"{entry['name']:38}{entry['bytes_per_vector']:7.0f}{entry['resident_per_vector']:8.0f}"
                     f"{entry['build_s']:8.0f}{cells}")
    lines += [f"{entry['name']:38} skipped: {entry['skip']}" for entry in entries if entry.get("skip")] + [""]
    lines += without_python(found, taking, targets) + cost_of_calls(summary)
    lines += race_of_builds(summary) + [""]
    lines += verdicts(summary["targets"])
    lines += [f"    {target['name']}: {target['ours']} against {target['theirs']}" for target in summary["targets"]]
    return "\n".join(lines) + "\n"


def without_python(found, taking, targets):
    """One query a call from C or C++: the speeds, and which libraries cannot be had that way."""
    lines = ["one query a call from C or C++, at the settings of 'one':"]
    for entry in taking:
        if any(entry["name"] in found.get((NATIVE, target), {}) for target in targets):
            lines.append(f"    {entry['name']:38}" + "".join(f"{shown(found, entry['name'], NATIVE, target):>12}"
                                                            for target in targets)
                         + tails(found, entry["name"], targets))
    return lines + [f"    not {', '.join(libraries)}: {why}" for why, libraries in no_native(taking).items()]


def tails(found, name, targets):
    """The 99th percentiles of single queries, where the record has them."""
    slowest = [found.get((NATIVE, target), {}).get(name, {}).get("p99_us") for target in targets]
    return "   p99, us: " + " / ".join(f"{us:,.0f}" if us else "-" for us in slowest) if any(slowest) else ""


def race_of_builds(summary):
    rows = summary.get("builds", {})
    return ["builds by turns, seconds by the clock, of all threads, and times the first of ours:"] * bool(rows) + [
        f"    {name:38}{mine['build_s']['median']:8.1f}{mine['cpu_s']['median']:8.1f}   "
        + (span(mine["ratio"]) if mine["ratio"] else "-") for name, mine in rows.items()]


def cost_of_calls(summary):
    return ["what one call costs from Python, microseconds (an index of few vectors):",
            *(f"    {engine + ' ' + mine['variant']:38}{mine['us']['median']:8.1f}  ({mine['us']['min']:.1f} to "
              f"{mine['us']['max']:.1f})" for engine, mine in summary.get("calls", {}).items())]


def speed(found, name, mode, target):
    return found.get((mode, target), {}).get(name, {"qps": {"median": 0.0}})["qps"]["median"]


def shown(found, name, mode, target, none="-"):
    value = speed(found, name, mode, target)
    return f"{value:,.0f}" if value else none
