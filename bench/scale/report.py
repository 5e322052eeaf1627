"""From measured sizes to medians, laws, and what the laws say of sizes that this machine cannot hold."""

import statistics

import curves
import laws
from setting import span, spread

RECALL = 0.95
FAR = (1_000_000_000, 4_000_000_000)
MOST_AT_ONCE = (2**32 - 2) // 4  # places of leaves are numbers of 32 bits, and a vector is in four of each partitioning
CORES = 80  # two processors of 40
SHARES = (1.0, 0.5)  # of the speed of this machine's cores, all working: nothing is lost, and half is
PLANNED = ("bytes_total", "bytes_layer0", "bytes_upper", "page_table_bytes_4k", "page_table_bytes_2m")


def of(events, kind, **fields):
    return [event for event in events if event["event"] == kind and
            all(event[name] == value for name, value in fields.items())]


def row_of(events, rows, builder):
    builds = of(events, "build", rows=rows, builder=builder)
    (curve,) = of(events, "curve", rows=rows, builder=builder)
    evaluations = curves.at_recall(curve["points"], RECALL, "evaluations")
    qps = curves.at_recall(curve["points"], RECALL, "qps")
    return {"rows": rows, "builder": builder, "rounds": len(builds),
            **{field: spread([event[field] for event in builds]) for field in ("seconds", "processor_s")},
            **{field: statistics.median(event[field] for event in builds)
               for field in ("link_s", "number_s", "save_s", "peak_bytes", "bytes_total")},
            "evaluations": evaluations, "qps": qps,
            "ns": 1e9 / (evaluations * qps) if evaluations and qps else None}


def fits_of(rows):
    """Laws of one builder: of the median of seconds, and of searches at the recall where that was reached."""
    sizes = [row["rows"] for row in rows]
    reached = [row for row in rows if row["evaluations"]]
    builder = rows[0]["builder"]
    time_law = laws.with_centres if builder == "leaves" else laws.n_log_n
    found = {"builder": builder,
             "processor_s": time_law(sizes, [row["processor_s"]["median"] for row in rows]),
             "processor_power": laws.power(sizes, [row["processor_s"]["median"] for row in rows]),
             "peak_bytes": laws.line(sizes, [row["peak_bytes"] for row in rows])}
    if len(reached) > 1:
        there = [row["rows"] for row in reached]
        found["evaluations"] = laws.logarithm(there, [row["evaluations"] for row in reached])
        found["ns"] = laws.logarithm(there, [row["ns"] for row in reached])
    return found


def far_row(fits, plan):
    """The laws at a size; the file is the library's plan."""
    n = plan["rows"]
    row = {"rows": n, "builder": fits["builder"], "file_bytes": plan["bytes_total"],
           "peak_bytes": laws.at(fits["peak_bytes"], n),
           "hours": {str(share): laws.at(fits["processor_s"], n) / CORES / share / 3600 for share in SHARES}}
    if "ns" in fits:
        evaluations, ns = laws.at(fits["evaluations"], n), laws.at(fits["ns"], n)
        row.update({"evaluations": evaluations, "ns": ns,
                    "qps": {str(share): share * CORES * 1e9 / (evaluations * ns) for share in SHARES}})
    return row


def summarise(events, plans):
    builders = list(dict.fromkeys(event["builder"] for event in events))
    rows = [row_of(events, size, builder) for builder in builders
            for size in dict.fromkeys(event["rows"] for event in events)]
    fits = [fits_of([row for row in rows if row["builder"] == builder]) for builder in builders]
    far = [far_row(fit, plan) for plan in plans for fit in fits
           if fit["builder"] != "leaves" or plan["rows"] <= MOST_AT_ONCE]
    return {"sizes": rows, "fits": fits, "plans": plans, "far": far}


# ---------------------------------------------------------------------------------------------------------------------
# Text and tables
# ---------------------------------------------------------------------------------------------------------------------

def number(value, digits=0):
    return "–" if value is None else f"{value:,.{digits}f}"


def measured_lines(summary):
    yield ("Vectors", "Builder", "Seconds", "Processor s", "Peak, B a vector", "File, B a vector",
           f"Evaluations at {RECALL}", "Queries/s, one core", "ns an evaluation")
    for row in summary["sizes"]:
        yield (f"{row['rows']:,}", row["builder"], span(row["seconds"]), f"{row['processor_s']['median']:.2f}",
               number(row["peak_bytes"] / row["rows"]), number(row["bytes_total"] / row["rows"], 1),
               number(row["evaluations"]), number(row["qps"]), number(row["ns"], 1))


def fit_lines(summary):
    yield ("What", "Builder", "Law", "a", "b", "Largest error")
    names = {"processor_s": "processor seconds", "processor_power": "processor seconds", "peak_bytes": "peak bytes",
             "evaluations": f"evaluations at {RECALL}", "ns": "ns an evaluation"}
    for fits in summary["fits"]:
        for field, name in names.items():
            if field in fits:
                law = fits[field]
                yield (name, fits["builder"], law["law"], f"{law['a']:.4g}", f"{law['b']:.4g}", f"{100 * law['off']:.0f} %")


def far_lines(summary):
    yield ("Vectors", "Builder", "File, GB", "Peak of the build, GB", "Build, hours", "Evaluations",
           "ns an evaluation", "Queries/s, thousands")
    for row in summary["far"]:
        hours, qps = row["hours"], row.get("qps", {})
        yield (f"{row['rows']:,}", row["builder"], number(row["file_bytes"] / 1e9), number(row["peak_bytes"] / 1e9),
               " to ".join(number(hours[str(share)], 1) for share in SHARES), number(row.get("evaluations")),
               number(row.get("ns"), 0),
               " to ".join(number(qps[str(share)] / 1e3) for share in SHARES[::-1]) if qps else "–")


def markdown(lines):
    head, *rows = lines
    ruled = "|" + "|".join("---" if at < 2 else "---:" for at in range(len(head))) + "|"
    return "\n".join(["| " + " | ".join(head) + " |", ruled, *("| " + " | ".join(row) + " |" for row in rows)])


def text(record):
    summary = record["summary"]
    return "\n\n".join([f"{record['machine']['cpu']}, builds on {record['parameters']['threads']} threads, load average "
                        f"at the start {record['machine']['load_average']:.2f}",
                        *(markdown(list(lines(summary))) for lines in (measured_lines, fit_lines, far_lines))]) + "\n"
