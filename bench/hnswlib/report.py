"""From the lines the stages printed to ratios, tables and the issue's targets."""

import statistics

from setting import fact, span, spread, verdicts

# What is to be reached against hnswlib on this data set: at least so many times as fast, at most so large a share of
# its bytes, at most so many milliseconds to the first answer.
TARGET_DATA = "glove100"
SEARCH_TARGET = 2.5
BUILD_TARGET = 1.5
SIZE_TARGETS = {"none": 0.5, "bf16": 0.85, "f32": 1.25}
FIRST_TARGET_MS = 10.0


def ratios(events, field, ours_over_theirs):
    """Our value and theirs of the same round, divided; the spread of that over the rounds."""
    rounds = {}
    for event in events:
        rounds.setdefault(event["round"], {})[event["side"]] = event[field]
    return spread([pair[0] / pair[1] if ours_over_theirs else pair[1] / pair[0] for pair in rounds.values()])


def per_side(events, field):
    return [statistics.median(e[field] for e in events if e["side"] == side) for side in (0, 1)]


def search_rows(events):
    rows = []
    for target in sorted({e["target"] for e in events if e["event"] == "point"}):
        passes = [e for e in events if e["event"] == "pass" and e["target"] == target]
        points = {e["side"]: e for e in events if e["event"] == "point" and e["target"] == target}
        rows.append({"target": target, "ratio": ratios(passes, "qps", True),
                     "cpu_ratio": ratios(passes, "cpu_seconds", False), "qps": per_side(passes, "qps"),
                     "recall": per_side(passes, "recall"), "ef": [points[s]["ef"] for s in (0, 1)],
                     **{name: [points[s][name] for s in (0, 1)] for name in ("p50_us", "p99_us", "evaluations")}})
    return rows


def summarise(peers, about, events):
    builds = [e for e in events if e["event"] == "build"]
    sizes = {(e["peer"], e["refine"]): e["bytes"] for e in events if e["event"] == "size"}
    theirs = sizes[(peers[1], "bf16")]
    rows = about["data"]["rows"]
    pages = [e for e in events if e["event"] == "pages"]
    summary = {
        "search": search_rows(events),
        "bytes_per_vector": {peers[1]: theirs / rows, **{f"shortlist {refine}": sizes[("shortlist", refine)] / rows
                                                         for refine in SIZE_TARGETS}},
        "size_ratio": {refine: sizes[("shortlist", refine)] / theirs for refine in SIZE_TARGETS},
        "first_ms": [spread([e["answer_ms"] for e in events if e["event"] == "first" and e["peer"] == peer])
                     for peer in peers],
        "pages_qps": {("huge" if huge else "small"): spread([e["qps"] for e in pages if e["huge"] == huge])
                      for huge in (False, True)},
    }
    if builds:
        summary["build"] = {"ratio": ratios(builds, "seconds", False),
                            "cpu_ratio": ratios(builds, "cpu_seconds", False), "seconds": per_side(builds, "seconds")}
    summary["targets"] = targets(summary)
    return summary


def targets(summary):
    facts = [fact(f"search, recall@10 {row['target']:.2f}, times as fast", SEARCH_TARGET, row["ratio"]["median"], True)
             for row in summary["search"]]
    if "build" in summary:
        facts.append(fact("build, times as fast", BUILD_TARGET, summary["build"]["ratio"]["median"], True))
    facts += [fact(f"file, refine {refine}, share of its bytes", target, summary["size_ratio"][refine], False)
              for refine, target in SIZE_TARGETS.items()]
    facts.append(fact("open and first query, ms", FIRST_TARGET_MS, summary["first_ms"][0]["median"], False))
    return facts


def table(peers, about, summary):
    lines = ["", f"{about['data']['name']}: {about['data']['rows']} x {about['data']['dim']}, cosine, "
             f"{about['machine']['cpu']}, {about['parameters']['build_threads']} build threads, one search thread",
             "", f"{'recall@10':10}{'':14}{'ef':>6}{'recall':>9}{'QPS':>10}{'p50 us':>9}{'p99 us':>9}"
             f"{'evaluations':>13}   ratio, median (min to max)"]
    for row in summary["search"]:
        for side in (0, 1):
            lines.append(f"{row['target'] if side == 0 else '':<10}{peers[side]:14}{row['ef'][side]:6}"
                         f"{row['recall'][side]:9.4f}{row['qps'][side]:10.0f}{row['p50_us'][side]:9.1f}"
                         f"{row['p99_us'][side]:9.1f}{row['evaluations'][side]:13.0f}   "
                         f"{span(row['ratio']) if side == 0 else 'by CPU time ' + span(row['cpu_ratio'])}")
    if "build" in summary:
        build = summary["build"]
        lines += ["", f"build          {build['seconds'][0]:8.2f} s against {build['seconds'][1]:8.2f} s   ratio "
                  f"{span(build['ratio'])}, by CPU time {span(build['cpu_ratio'])}"]
    theirs = summary["bytes_per_vector"][peers[1]]
    lines += [f"bytes a vector {summary['bytes_per_vector']['shortlist ' + refine]:8.1f} against {theirs:8.1f}, "
              f"refine {refine:5} ratio {summary['size_ratio'][refine]:.3f}" for refine in SIZE_TARGETS]
    lines += [f"first answer   {span(summary['first_ms'][0])} ms mapped, against {span(summary['first_ms'][1])} ms",
              f"{peers[1]}'s memory: {summary['pages_qps']['small']['median']:.0f} QPS with small pages, "
              f"{summary['pages_qps']['huge']['median']:.0f} with huge ones; the better was used", ""]
    if about["data"]["name"] != TARGET_DATA:
        lines.append(f"the targets are those of {TARGET_DATA}; for other data they are no verdict")
    lines += verdicts(summary["targets"])
    return "\n".join(lines) + "\n"


def markdown(peers, about, summary):
    lines = [f"| {about['data']['name']}, {about['machine']['cpu']} | Shortlist | {peers[1]} | ratio |",
             "|---|---:|---:|---:|"]
    for row in summary["search"]:
        lines.append(f"| QPS at recall@10 {row['target']:.2f}, one thread | {row['qps'][0]:,.0f} | "
                     f"{row['qps'][1]:,.0f} | {row['ratio']['median']:.2f} |")
    for row in summary["search"]:
        lines.append(f"| p99 at recall@10 {row['target']:.2f}, µs | {row['p99_us'][0]:,.0f} | "
                     f"{row['p99_us'][1]:,.0f} | {row['p99_us'][0] / row['p99_us'][1]:.2f} |")
    if "build" in summary:
        build = summary["build"]
        lines.append(f"| build, {about['parameters']['build_threads']} threads, s | {build['seconds'][0]:.1f} | "
                     f"{build['seconds'][1]:.1f} | {build['ratio']['median']:.2f} times as fast |")
    theirs = summary["bytes_per_vector"][peers[1]]
    for refine in SIZE_TARGETS:
        lines.append(f"| bytes a vector, refine {refine} | {summary['bytes_per_vector']['shortlist ' + refine]:.0f} | "
                     f"{theirs:.0f} | {summary['size_ratio'][refine]:.2f} |")
    lines.append(f"| open and first query, ms | {summary['first_ms'][0]['median']:.2f} | "
                 f"{summary['first_ms'][1]['median']:.0f} | |")
    return "\n".join(lines)
