"""From what was measured to ratios, tables and targets."""

import statistics

from setting import fact, span, spread, verdicts

TRAIN_TARGET = 2.0  # times PyTorch's rows a second
REQUEST_TARGETS = {"criteo": 2.0, "small": 3.0}  # times ONNX Runtime's requests a second
SINGLE_TARGET = 0.5  # of ONNX Runtime's time
DIFFERENCE_TARGET = 1e-5  # between the two sides' scores
FUNNEL_TARGET_MS = 3.0  # p99


def groups(events, *names):
    found = {}
    for event in events:
        found.setdefault(tuple(event[name] for name in names), []).append(event)
    return found


def training(events):
    rows = []
    for (data, threads, batch), group in groups([e for e in events if e["event"] == "train"], "data", "threads",
                                                "batch").items():
        rows.append({"data": data, "threads": threads, "batch": batch, "mode": group[0]["mode"],
                     "peer": group[0]["peer"], "ours": statistics.median(e["ours"] for e in group),
                     "theirs": statistics.median(e["theirs"] for e in group),
                     "ratio": spread([e["ours"] / e["theirs"] for e in group])})
    return rows


def serving(events):
    """A row for each form of the peer's inputs: "joined" rows, or the user's given "once"; all were joined at first."""
    rows = []
    served = [{"form": "joined", **e} for e in events if e["event"] in ("request", "single")]
    for (event, shape, items, form), group in groups(served, "event", "shape", "items", "form").items():
        rows.append({"event": event, "shape": shape, "items": items, "form": form, "peer": group[0]["peer"],
                     "ours_us": statistics.median(e["ours_us"] for e in group),
                     "theirs_us": statistics.median(e["theirs_us"] for e in group),
                     "ratio": spread([e["theirs_us"] / e["ours_us"] for e in group]),
                     "difference": max(e["difference"] for e in group)})
    return rows


def item_parts(events):
    """A row for each type of the items' parts under each kind of layers; the ratio is the time of parts and layers of
    floats over its time, of the same round."""
    rows = []
    for (shape,), group in groups([e for e in events if e["event"] == "item_part"], "shape").items():
        floats = {e["round"]: e["us"] for e in group if (e["items"], e["layers"]) == ("layer", "f32")}
        for (items, layers), own in groups(group, "items", "layers").items():
            rows.append({"shape": shape, "items": items, "layers": layers,
                         "us": statistics.median(e["us"] for e in own),
                         "ratio": spread([floats[e["round"]] / e["us"] for e in own]),
                         "difference": max(e["difference"] for e in own),
                         "best_shared": statistics.mean(e["best_shared"] for e in own)})
    return rows


def funnel(events):
    """A row for each kind of ranking; the ratio is the p50 of layers of floats over its own, of the same round."""
    rows = []
    for (shape,), group in groups([e for e in events if e["event"] == "funnel"], "shape").items():
        floats = {e["round"]: e["p50_us"] for e in group if e["layers"] == "f32"}
        for (layers,), own in groups(group, "layers").items():
            rows.append({"shape": shape, "layers": layers, "requests": own[0]["requests"],
                         "ratio": spread([floats[e["round"]] / e["p50_us"] for e in own]),
                         "best_shared": statistics.mean(e["best_shared"] for e in own),
                         **{name: spread([e[name] for e in own]) for name in ("p50_us", "p99_us", "max_us")}})
    return rows


def hardest(rows):
    """{shape: the least ratio} of requests over items whose part is computed ahead, among the forms of the inputs."""
    found = {}
    for row in rows:
        if row["event"] == "request" and row["items"] == "layer":
            found[row["shape"]] = min(row["ratio"]["median"], found.get(row["shape"], float("inf")))
    return found


def summarise(events):
    summary = {"training": training(events), "serving": serving(events), "item_parts": item_parts(events),
               "funnel": funnel(events)}
    facts = []
    for shape, ratio in hardest(summary["serving"]).items():
        facts.append(fact(f"1 user, 500 candidates, {shape}, times as fast", REQUEST_TARGETS[shape], ratio, True))
    for row in summary["serving"]:
        if row["event"] == "single" and row["shape"] == "small":
            facts.append(fact("one row, small, share of its time", SINGLE_TARGET, 1 / row["ratio"]["median"], False))
    if summary["serving"]:
        facts.append(fact("largest difference of scores, in 1e-5", 1.0,
                          max(row["difference"] for row in summary["serving"]) / DIFFERENCE_TARGET, False))
    for row in summary["funnel"]:
        if (row["shape"], row["layers"]) == ("small", "f32"):
            facts.append(fact("funnel over glove100, p99 ms", FUNNEL_TARGET_MS, row["p99_us"]["median"] / 1000, False))
    for row in summary["training"]:
        facts.append(fact(f"training {row['data']}, batch {row['batch']}, {row['threads']} threads, times as fast",
                          TRAIN_TARGET, row["ratio"]["median"], True))
    return {**summary, "targets": facts}


ITEMS = {"layer": "the items' part computed ahead", "codes": "the items encoded ahead"}
RANKINGS = {"none": "recall alone", "f32": "layers, parts of floats", "int8": "INT8 layers, INT8 parts"}
FORMS = {"joined": "joined rows", "once": "the user's inputs once"}


def described(row):
    """Describes a row of serving: the data that ours had ahead, and the input of the peer."""
    if row["event"] == "single":
        return f"one row, {row['shape']} net"
    return f"1 user + 500 candidates, {row['shape']} net, {ITEMS[row['items']]}; the peer: {FORMS[row['form']]}"


def table(about, summary):
    lines = ["", about["machine"]["cpu"], ""]
    for row in summary["serving"]:
        lines.append(f"{described(row):70} {row['ours_us']:10.1f} us against {row['theirs_us']:10.1f} us   ratio "
                     f"{span(row['ratio'])}   scores within {row['difference']:.1g}")
    for row in summary["item_parts"]:
        lines.append(f"1 user + 500 candidates, {row['shape']} net, {row['layers']:4} layers, {row['items']:10} "
                     f"{row['us']:10.1f} us   times as fast as layers and parts of floats {span(row['ratio'])}   scores within {row['difference']:.1g}, "
                     f"{row['best_shared']:.3f} of the 10 best")
    for row in summary["funnel"]:
        lines.append(f"funnel over glove100, {row['shape']:6} net, {RANKINGS[row['layers']]:24} p50 "
                     f"{span(row['p50_us'], 0)} us   p99 {span(row['p99_us'], 0)} us   {row['best_shared']:.3f} of the 10 best")
    for row in summary["training"]:
        lines.append(f"training {row['data']:8} batch {row['batch']:5} threads {row['threads']} {row['ours']:10.0f} "
                     f"against {row['theirs']:10.0f} rows/s ({row['mode']})   ratio {span(row['ratio'])}")
    return "\n".join([*lines, "", *verdicts(summary["targets"])]) + "\n"


def markdown(about, summary):
    lines = [f"| {about['machine']['cpu']} | Shortlist | peer | ratio |", "|---|---:|---:|---:|"]
    for row in summary["serving"]:
        lines.append(f"| {described(row)}, µs ({row['peer']}) | {row['ours_us']:,.1f} | {row['theirs_us']:,.1f} | "
                     f"{row['ratio']['median']:.2f} |")
    for row in summary["training"]:
        lines.append(f"| training, {row['data']} shape, batch {row['batch']}, {row['threads']} thread"
                     f"{'s' if row['threads'] > 1 else ''}, rows/s ({row['peer']}) | {row['ours']:,.0f} | "
                     f"{row['theirs']:,.0f} | {row['ratio']['median']:.2f} |")
    return "\n".join(lines)
