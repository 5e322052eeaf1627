"""The results of ./dev bench precision: ratios of rounds, drops of accuracy, targets, and tables for the terminal."""

import statistics

from setting import fact, verdicts

OURS = "shortlist"
INT8_TARGET = 2.2  # times as fast as the best INT8 of the peers
OWN_TARGETS = {("criteo", 500): 3.3, ("small", 500): 1.8, ("criteo", 1): 2.5}
TABLE_TARGETS = {("tuned", "f32"): 0.0005, ("f32", "i4"): 0.0003}  # drop of AUC
FLOAT_ERROR, CODED_ERROR = 1e-4, 0.2  # of the outputs' deviation
FLOATS = ("f32", "default", "bf16", "fp16")


def quartiles(values):
    ordered = sorted(values)
    return {"median": statistics.median(ordered), "min": ordered[len(ordered) // 4],
            "max": ordered[len(ordered) * 3 // 4]}


def strangers(found):
    """Contenders that compute another net: the root mean square of their error is beyond a share of the deviation of
    f32's outputs."""
    def bound(name):
        _, precision, form = split(name)
        return FLOAT_ERROR if precision == "f32" and not form.startswith("parts-") else CODED_ERROR

    return [row["name"] for row in found["contenders"] if not row["rms"] <= bound(row["name"]) * found["deviation"]]


def auc(labels, scores):
    """The share of pairs of a positive and another row that are in order; ties count half."""
    order = sorted(zip(scores, labels), key=lambda pair: pair[0])
    positive = sum(bool(label) for label in labels)
    ranks, i = 0.0, 0
    while i < len(order):
        end = i
        while end < len(order) and order[end][0] == order[i][0]:
            end += 1
        ranks += (i + 1 + end) / 2 * sum(bool(label) for _, label in order[i:end])
        i = end
    return (ranks - positive * (positive + 1) / 2) / (positive * (len(order) - positive))


def split(name):
    """(library, precision, form) of a contender."""
    library, precision, *form = name.split("/")
    return library, precision, form[0] if form else ""


def fastest(rows, which):
    return min((row for row in rows if which(*split(row["name"]))), key=lambda row: statistics.median(row["us"]),
               default=None)


def ratio(slow, fast):
    """How many times as fast, of the same rounds."""
    return quartiles([a / b for a, b in zip(slow["us"], fast["us"])])


def compared(name, slow, fast):
    if not slow or not fast:
        return None
    return {"name": name, "slow": slow["name"], "fast": fast["name"], "ratio": ratio(slow, fast)}


def speed(event):
    """A case's contenders with the time of a row, and how our fastest INT8 compares."""
    rows, count = event["contenders"], event["rows"]
    served = ("parts", "parts-bf16", "parts-i8") if count > 1 else ("whole",)
    int8 = fastest(rows, lambda lib, p, form: lib == OURS and p not in FLOATS and form in served)
    f32 = fastest(rows, lambda lib, p, form: lib == OURS and p == "f32" and form == served[0])

    def peer(wanted):
        return fastest(rows, lambda lib, p, form: lib != OURS and wanted(p, form))

    others = {"best INT8 of the peers": lambda p, form: p not in FLOATS and form != "split",
              "best INT8 of the peers, whole rows": lambda p, form: p not in FLOATS and form == "whole",
              "best of the peers with parts given too": lambda p, form: form == "split",
              "best floats of the peers": lambda p, form: p in FLOATS and form != "split"}
    pairs = [compared("own f32", f32, int8), *(compared(name, peer(wanted), int8) for name, wanted in others.items())]
    return {"net": event["net"], "rows": count, "deviation": event["deviation"],
            "contenders": [{"name": row["name"], "us": quartiles([t / count for t in row["us"]]),
                            "rms": row["rms"], "largest": row["largest"]} for row in rows],
            "ratios": [pair for pair in pairs if pair]}


def accuracy(event):
    base = event["models"][0]
    return {"set": event["set"], "rows": event["rows"],
            "models": [{"name": row["name"], "auc": row["auc"], "drop": base["auc"] - row["auc"], "bytes": row["bytes"],
                        "requests_per_s": 1e6 / statistics.median(row["us"]), "times_f32": ratio(base, row)}
                       for row in event["models"]]}


def own_floats(events):
    """Each library's event of f32."""
    return {split(event["name"])[0]: event for event in events if split(event["name"])[1] == "f32"}


def tuner(events):
    floats = own_floats(events)
    found = []
    for event in events:
        base = floats[split(event["name"])[0]]
        found.append({"name": event["name"], "auc": event["auc"], "drop": base["auc"] - event["auc"],
                      "us_a_row": statistics.median(event["us"]) / 500, "times_own_f32": ratio(base, event),
                      "seconds": event["seconds"], "proved": event.get("proved")})
    return found


def training(events):
    base = own_floats(events)
    ours = {split(event["name"])[1]: event for event in events if split(event["name"])[0] == OURS}
    found = []
    for event in events:
        library, precision, _ = split(event["name"])
        found.append({"name": event["name"], "batch": event["batch"], "ms": quartiles(event["ms"]),
                      "of_own_f32": quartiles([a / b for a, b in zip(event["ms"], base[library]["ms"])]),
                      "of_ours": quartiles([a / b for a, b in zip(event["ms"], ours[precision]["ms"])])})
    return found


def table(events):
    """Means over the seeds, by set, layers and tables. A seed whose search found nothing within the bound is left out
    of the mean."""
    runs = {}
    for event in events:
        base = event["models"][0]
        for row in event["models"]:
            runs.setdefault((event["set"], row["layers"], row["tables"]), []).append((base, row))
    found = []
    for (name, layers, tables), pairs in runs.items():
        drops = [base["auc"] - row["auc"] for base, row in pairs]
        size = statistics.mean(row["bytes"] for _, row in pairs)
        found.append({"set": name, "seeds": len(pairs), "layers": layers, "tables": tables,
                      "auc": statistics.mean(row["auc"] for _, row in pairs), "drop": statistics.mean(drops),
                      "drop_largest": max(drops), "bytes": round(size),
                      "bytes_share": statistics.mean(row["bytes"] / base["bytes"] for base, row in pairs)})
    return found


def targets(summary):
    facts = []
    for case in summary["speed"]:
        of = {pair["name"]: pair["ratio"]["median"] for pair in case["ratios"]}
        which = f"{case['net']}, {case['rows']} rows"
        for name, told in (("best INT8 of the peers", "best"),
                           ("best INT8 of the peers, whole rows", "best of whole rows")):
            if case["net"] == "criteo" and case["rows"] > 1 and name in of:
                facts.append(fact(f"{which}: INT8 over the peers' {told}", INT8_TARGET, of[name], True))
        if (case["net"], case["rows"]) in OWN_TARGETS:
            facts.append(fact(f"{which}: INT8 over own f32", OWN_TARGETS[case["net"], case["rows"]], of["own f32"],
                              True))
    for row in summary["table"]:
        bound = TABLE_TARGETS.get((row["layers"], row["tables"]))
        if bound and row["set"] in ("adult", "movielens"):
            facts.append(fact(f"{row['set']}, layers {row['layers']}, tables {row['tables']}: AUC drop", bound,
                              row["drop"], False))
    return facts


def summarise(events):
    def of(kind):
        return [event for event in events if event["event"] == kind]

    summary = {"speed": [speed(event) for event in of("speed")], "accuracy": [accuracy(e) for e in of("accuracy")],
               "tuner": tuner(of("tuner")), "training": training(of("training")), "table": table(of("table"))}
    return {**summary, "targets": targets(summary)}


def between(values, digits=2):
    return f"{values['median']:.{digits}f} ({values['min']:.{digits}f} to {values['max']:.{digits}f})"


def speed_lines(case):
    yield ""
    yield f"{case['net']}, {case['rows']} rows; µs a row; error beside f32, whose deviation is {case['deviation']:.3f}"
    for row in case["contenders"]:
        yield f"  {row['name']:38} {between(row['us'], 3):30} rms {row['rms']:.2g}, largest {row['largest']:.2g}"
    for pair in case["ratios"]:
        yield f"  {pair['fast']} over {pair['name']}, {pair['slow']}: {between(pair['ratio'])}"


def accuracy_lines(case):
    yield ""
    yield f"{case['set']}, {case['rows']} rows: AUC, drop, bytes, requests of 500 rows a second"
    for row in case["models"]:
        yield (f"  {row['name']:34} {row['auc']:.5f} {row['drop']:9.5f} {row['bytes']:9d} "
               f"{row['requests_per_s']:8.0f}")


def tuner_line(row):
    took = f", found in {row['seconds']:.2f} s" if row["seconds"] else ""
    return (f"tuner  {row['name']:34} AUC {row['auc']:.5f}, drop {row['drop']:.5f}, {row['us_a_row']:.3f} µs a row, "
            f"{between(row['times_own_f32'])} times its own f32{took}")


def training_line(row):
    return (f"training  {row['name']:20} {between(row['ms'], 1)} ms a step, {between(row['of_own_f32'])} of own f32, "
            f"{between(row['of_ours'])} of ours")


def text(about, summary):
    lines = ["", about["machine"]["cpu"]]
    lines += [line for case in summary["speed"] for line in speed_lines(case)]
    lines += [line for case in summary["accuracy"] for line in accuracy_lines(case)]
    lines += ["", *map(tuner_line, summary["tuner"]), "", *map(training_line, summary["training"])]
    return "\n".join([*lines, "", markdown(summary), *verdicts(summary["targets"])]) + "\n"


def speed_markdown(summary):
    lines = ["| Net, rows | Ours | µs a row | Beside | µs a row | Ratio |", "|---|---|---:|---|---:|---|"]
    for case in summary["speed"]:
        times = {row["name"]: row["us"]["median"] for row in case["contenders"]}
        for pair in case["ratios"]:
            lines.append(f"| {case['net']}, {case['rows']} | {pair['fast'].split('/', 1)[1]} | "
                         f"{times[pair['fast']]:.3g} | {pair['name']}: {pair['slow']} | {times[pair['slow']]:.3g} | "
                         f"{between(pair['ratio'])} |")
    return "\n".join(lines)


def accuracy_markdown(summary):
    lines = ["| Set | Model | AUC | Drop | Bytes | Requests a second |", "|---|---|---:|---:|---:|---:|"]
    for case in summary["accuracy"]:
        lines += [f"| {case['set']} | {row['name']} | {row['auc']:.5f} | {row['drop']:.5f} | {row['bytes']:,} | "
                  f"{row['requests_per_s']:,.0f} |" for row in case["models"]]
    return "\n".join(lines)


def table_markdown(summary):
    """The published table, for docs/notebook/precision.md."""
    lines = ["| Set | Layers | Tables | AUC, mean | Drop | Largest drop | Bytes | Of f32 |",
             "|---|---|---|---:|---:|---:|---:|---:|"]
    for row in summary["table"]:
        lines.append(f"| {row['set']}, {row['seeds']} seeds | {row['layers']} | {row['tables']} | {row['auc']:.5f} | "
                     f"{row['drop']:.5f} | {row['drop_largest']:.5f} | {row['bytes']:,} | {row['bytes_share']:.3f} |")
    return "\n".join(lines)


def markdown(summary):
    return "\n\n".join([speed_markdown(summary), accuracy_markdown(summary), table_markdown(summary)])
