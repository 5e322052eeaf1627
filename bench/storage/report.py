"""From the lines that the stages printed to medians, ratios of the same round and tables."""

import statistics

from setting import span, spread

MEDIA = ("dram", "map", "pmem", "pmem forced", "map, records", "pmem, records")
OURS = ("dram", "map", "pmem forced")  # of adding; dram is without durability
PEERS = ("usearch", "hnswlib")


def of(events, kind, **fields):
    return [e for e in events if e["event"] == kind and all(e[name] == value for name, value in fields.items())]


def about_ratio(event):
    """How much longer the queries about the 1,000th take in a new process than warm: the median of their ratios."""
    return statistics.median(first / warm for first, warm in event["about"])


def open_rows(events):
    """By file and place: a process each time."""
    rows = []
    for size, place in sorted({(e["bytes"], e["place"]) for e in of(events, "open")}):
        here = of(events, "open", bytes=size, place=place)
        rows.append({"bytes": size, "place": place, "opens": len(here),
                     **{name: spread([e[name] for e in here]) for name in ("open_ms", "answer_ms")},
                     "about_us": spread([statistics.median(first for first, _ in e["about"]) for e in here]),
                     "warm_us": spread([statistics.median(warm for _, warm in e["about"]) for e in here]),
                     "about_ratio": spread([about_ratio(e) for e in here])})
    return rows


COPIES = ("open_s", "open_one_s", "memcpy_fresh_s", "memcpy_s")


def copy_row(events):
    """Compares place dram, by all threads and by one, with memcpy of as many bytes. memcpy goes into memory that has no
    pages yet, and into memory that has them. A process's first turn is told of apart: what memory costs that nobody had
    for long."""
    copies = [e for e in of(events, "copy") if e["turn"] > 0]
    first = [e for e in of(events, "copy") if e["turn"] == 0]
    return {"bytes": copies[0]["bytes"],
            "gb_per_s": {name: spread([e["bytes"] / e[name] / 1e9 for e in copies]) for name in COPIES},
            "first_gb_per_s": spread([e["bytes"] / e["open_s"] / 1e9 for e in first]),
            "share": spread([e["memcpy_fresh_s"] / e["open_s"] for e in copies]),
            "share_one": spread([e["memcpy_fresh_s"] / e["open_one_s"] for e in copies]),
            "share_present": spread([e["memcpy_s"] / e["open_s"] for e in copies])}


def ratios(values, over):
    """`values` and `over` are by round: their ratio in each that both have."""
    return spread([values[number] / over[number] for number in values if number in over])


def qps_rows(events):
    rounds = {medium: {e["round"]: e["qps"] for e in of(events, "qps", medium=medium)} for medium in MEDIA}
    return [{"medium": medium, "qps": spread(list(found.values())), "ratio": ratios(found, rounds["dram"])}
            for medium, found in rounds.items() if found]


def procs_rows(events):
    """QPS of several processes on one mapped file over that of one, and what they hold of memory together."""
    rows = []
    for n in sorted({e["n"] for e in of(events, "procs")}):
        here = of(events, "procs", n=n)
        rows.append({"n": n, "qps": spread([e["qps"] for e in here]), "ratio": spread([e["ratio"] for e in here]),
                     "pss_bytes": spread([e["pss_bytes"] for e in here])})
    return rows


def rate(groups):
    """Rows a second, durable where they were made so."""
    return sum(g["rows"] for g in groups) / sum(g["add_s"] + g["durable_s"] for g in groups)


def insert_rows(events):
    groups = of(events, "group")
    rates = {}
    for way in (*OURS, *PEERS):
        for number in sorted({g["round"] for g in groups if g["way"] == way}):
            here = [g for g in groups if g["way"] == way and g["round"] == number]
            rates.setdefault(way, {})[number] = rate(here)
    return [{"way": way, "rows_per_s": spread(list(found.values())),
             "durable_ms": spread([1e3 * g["durable_s"] for g in groups if g["way"] == way]),
             "of_dram": ratios(found, rates["dram"]),
             "map_over_it": ratios(rates["map"], found)} for way, found in rates.items()]


def summarise(events):
    return {"open": open_rows(events), "copy": copy_row(events), "qps": qps_rows(events), "procs": procs_rows(events),
            "insert": insert_rows(events)}


def size_text(size):
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.2f} MiB"


def table(about, summary):
    lines = ["", f"{about['data']['name']}, {about['machine']['cpu']}, files on {about['file_system']}, in the page cache",
             "", f"{'file':>12} {'place':6}{'open ms':>10}   {'first answer ms, median (min to max)':38}"
             f"{'1,000th us':>11}{'warm us':>9}   ratio"]
    for row in summary["open"]:
        lines.append(f"{size_text(row['bytes']):>12} {row['place']:6}{row['open_ms']['median']:10.3f}   "
                     f"{span(row['answer_ms'], 3):38}{row['about_us']['median']:11.1f}{row['warm_us']['median']:9.1f}   "
                     f"{span(row['about_ratio'])}")
    copy = summary["copy"]
    rates = {name: span(copy["gb_per_s"][name]) for name in COPIES}
    lines += ["", f"place dram copies {size_text(copy['bytes'])} at {rates['open_s']} GB/s, by one thread at "
              f"{rates['open_one_s']}; memcpy into new memory at {rates['memcpy_fresh_s']}, into memory that is there at "
              f"{rates['memcpy_s']}", f"of memcpy into new memory: {span(copy['share'])}, by one thread "
              f"{span(copy['share_one'])}; a process's first: {span(copy['first_gb_per_s'])} GB/s",
              "", f"{'medium':14}{'QPS':>10}   of dram, median (min to max)"]
    lines += [f"{row['medium']:14}{row['qps']['median']:10.0f}   {span(row['ratio'])}" for row in summary["qps"]]
    lines += ["", f"{'processes':14}{'QPS':>10}{'PSS MiB':>10}   QPS of one, median (min to max)"]
    lines += [f"{row['n']:<14}{row['qps']['median']:10.0f}{row['pss_bytes']['median'] / 2**20:10.1f}   "
              f"{span(row['ratio'])}" for row in summary["procs"]]
    lines += ["", f"{'adding':14}{'rows/s':>10}{'ms a group to be durable':>26}   {'of dram':24}map over it"]
    lines += [f"{row['way']:14}{row['rows_per_s']['median']:10.0f}{row['durable_ms']['median']:26.2f}   "
              f"{span(row['of_dram'], 3):24}{span(row['map_over_it'])}" for row in summary["insert"]]
    return "\n".join(lines) + "\n"
