"""From the turns of two commits to ratios of the same round, verdicts and a table."""

import statistics

from setting import fact, spread, verdicts

SIDES = ("old", "new")


def of(events, kind):
    return [event for event in events if event["event"] == kind]


def settings(events, names):
    """The different values of these fields, in the order of their first event."""
    return list(dict.fromkeys(tuple(event[name] for name in names) for event in events))


def ratios(events, speed):
    """New over old of each round that has both."""
    rounds = {side: {e["round"]: e[speed] for e in events if e["side"] == side} for side in SIDES}
    return [rounds["new"][number] / rounds["old"][number] for number in rounds["old"] if number in rounds["new"]]


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive")[::2] if len(values) > 1 else [values[0]] * 2


def row_of(here, speed):
    values = ratios(here, speed)
    speeds = {side: statistics.median(e[speed] for e in here if e["side"] == side) for side in SIDES}
    return {"rounds": len(values), "ratio": spread(values), "quartiles": quartiles(values), "speed": speeds}


def search_rows(events):
    """A row for each set, codes and ef. `recall` has each side's values: one value if its rounds agree."""
    found = of(events, "search")
    rows = []
    for key in settings(found, ("set", "codes", "ef")):
        here = [e for e in found if (e["set"], e["codes"], e["ef"]) == key]
        recall = {side: sorted({e["recall"] for e in here if e["side"] == side}) for side in SIDES}
        rows.append({**dict(zip(("set", "codes", "ef"), key)), **row_of(here, "qps"), "recall": recall})
    return rows


def build_rows(events):
    found = of(events, "build")
    rows = []
    for key in settings(found, ("set", "codes", "threads")):
        here = [e for e in found if (e["set"], e["codes"], e["threads"]) == key]
        rows.append({**dict(zip(("set", "codes", "threads"), key)), **row_of(here, "rows_per_s")})
    return rows


def same_rows(events):
    """A row for each kind of file that both commits wrote: how many pairs, and the names of those that differ."""
    found = of(events, "same")
    return [{"what": what, "pairs": len(here), "different": list(dict.fromkeys(e["name"] for e in here if not e["same"]))}
            for (what,) in settings(found, ("what",)) for here in [[e for e in found if e["what"] == what]]]


def search_name(row):
    return f"search {row['set']} {row['codes']} ef {row['ef']}"


def build_name(row):
    return f"build {row['set']} {row['codes']} threads {row['threads']}"


def summarise(events, least_search, least_build, other_results):
    """`other_results`: results may differ between the commits, and are told but not judged."""
    searches, builds, same = search_rows(events), build_rows(events), same_rows(events)
    facts = [fact(search_name(row) + ", new/old", least_search, row["ratio"]["median"], True) for row in searches]
    facts += [fact(build_name(row) + ", new/old", least_build, row["ratio"]["median"], True) for row in builds]
    if not other_results:
        facts.append(fact("searches whose recall differs", 0,
                          sum(row["recall"]["old"] != row["recall"]["new"] for row in searches), False))
        facts += [fact(f"pairs of {row['what']} that differ", 0, len(row["different"]), False) for row in same]
    return {"searches": searches, "builds": builds, "same": same, "targets": facts}


def passed(summary):
    return all(target["met"] for target in summary["targets"])


def ratio_text(row):
    low, high = row["quartiles"]
    ratio = row["ratio"]
    return f"{ratio['median']:7.3f}   {low:.3f} to {high:.3f}   {ratio['min']:.3f} to {ratio['max']:.3f}"


def recall_text(values):
    return "/".join(f"{value:.4f}" for value in values)


def table(about, summary):
    lines = ["", f"old {about['old']}", f"new {about['new']}",
             f"{about['machine']['cpu']}, load average at the start {about['machine']['load_average']:.2f}", "",
             f"{'':40}{'old':>10}{'new':>10}  new/old   quartiles        least to most"]
    for row in summary["searches"]:
        recall = " ".join(f"{side} {recall_text(row['recall'][side])}" for side in SIDES)
        lines.append(f"{search_name(row) + ', queries/s':40}{row['speed']['old']:10.0f}{row['speed']['new']:10.0f}"
                     f"  {ratio_text(row)}   recall {recall}")
    for row in summary["builds"]:
        lines.append(f"{build_name(row) + ', rows/s':40}{row['speed']['old']:10.0f}{row['speed']['new']:10.0f}"
                     f"  {ratio_text(row)}")
    lines.append("")
    for row in summary["same"]:
        lines.append(f"{row['pairs']} pairs of {row['what']}: {'DIFFERENT' if row['different'] else 'the same'}")
        lines += [f"    {name}" for name in row["different"]]
    return "\n".join(lines + [""] + verdicts(summary["targets"]))
