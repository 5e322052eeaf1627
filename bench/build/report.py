"""From the turns of builds to medians, ratios of the same round, evaluations at recalls, and tables."""

import statistics

import curves
from setting import span, spread

RECALLS = (0.9, 0.95, 0.98, 0.99)
OURS = "shortlist leaves"
STAGES = ("read_s", "link_s", "number_s", "save_s")


def names(events, key):
    return list(dict.fromkeys(event[key] for event in events))


def ratios(builds, name, clock):
    """Seconds of a contender over those of our leaves, for each round that has both."""
    rounds = {one: {event["round"]: event[clock] for event in builds if event["name"] == one}
              for one in (name, OURS)}
    return [rounds[name][number] / rounds[OURS][number] for number in rounds[name] if number in rounds[OURS]]


def row_of(builds, name):
    own = [event for event in builds if event["name"] == name]
    over = {clock: ratios(builds, name, clock) for clock in ("seconds", "processor_s")}
    row = {"name": name, "rounds": len(own), "seconds": spread([event["seconds"] for event in own]),
           "processor_s": spread([event["processor_s"] for event in own]), "bytes": own[0]["bytes"],
           "over_leaves": {clock: spread(values) for clock, values in over.items() if values}}
    if STAGES[0] in own[0]:
        row["stages"] = {stage: statistics.median(event[stage] for event in own) for stage in STAGES}
    return row


def curve_row(event):
    return {"name": event["name"],
            "evaluations": {str(recall): curves.at_recall(event["points"], recall, "evaluations") for recall in RECALLS}}


def summarise(events):
    sets = []
    for name in names(events, "set"):
        here = [event for event in events if event["set"] == name]
        builds = [event for event in here if event["event"] == "build"]
        sets.append({"set": name, "rows": builds[0]["rows"],
                     "builds": sorted((row_of(builds, one) for one in names(builds, "name")),
                                      key=lambda row: row["seconds"]["median"]),
                     "curves": [curve_row(event) for event in here if event["event"] == "curve"]})
    return {"sets": sets}


def table(record):
    lines = ["", f"{record['machine']['cpu']}, {record['parameters']['threads']} threads, load average at the start "
             f"{record['machine']['load_average']:.2f}"]
    for found in record["summary"]["sets"]:
        lines += ["", f"{found['set']}, {found['rows']} rows",
                  f"{'':22}{'seconds':>26}{'over leaves':>26}{'processor s':>13}{'over leaves':>26}{'MB':>8}"]
        for row in found["builds"]:
            wall, processor = (span(row["over_leaves"][clock]) if clock in row["over_leaves"] else "-"
                               for clock in ("seconds", "processor_s"))
            lines.append(f"{row['name']:22}{span(row['seconds']):>26}{wall:>26}{row['processor_s']['median']:13.2f}"
                         f"{processor:>26}{row['bytes'] / 1e6:8.1f}")
            if "stages" in row:
                lines.append("    " + ", ".join(f"{stage[:-2]} {seconds:.2f}" for stage, seconds in
                                                row["stages"].items()) + " s")
        for row in found["curves"]:
            shown = [f"{'-' if value is None else format(value, '.0f'):>7}" for value in row["evaluations"].values()]
            lines.append(f"{row['name']:22}evaluations at recall {', '.join(row['evaluations'])}: {' '.join(shown)}")
    lines += [f"left out: {name}: {why}" for name, why in record["failed"].items()]
    return "\n".join(lines) + "\n"
