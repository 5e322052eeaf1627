"""Prints the Markdown tables of the recorded races, or writes them between the marks of two files. All tables go to
docs/BENCHMARKS.md; one line a library of one race goes to README.md."""

import argparse
import json
import pathlib
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import engines  # noqa: E402
import records  # noqa: E402
import report  # noqa: E402
from executed import per_thousand  # noqa: E402
from setting import between  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = "bench/results"
ALL, FRONT = "docs/BENCHMARKS.md", "README.md"  # where every table goes, and the one that a newcomer sees
FRONT_SET = "glove100"
COLUMNS = 120
TARGETS = ("0.90", "0.95", "0.99")
OFF = 0.005
EVERYONE = ",".join(engines.NAMES)


def strongest(entries, found):
    """Keeps each library's variants that are its fastest at some recall. Ours come first, then the others by speed."""
    taking = [entry for entry in entries if not entry.get("skip")]
    kept = []
    for engine in dict.fromkeys(entry["engine"] for entry in taking):
        mine = [entry for entry in taking if entry["engine"] == engine]
        leads = {report.best(found[cell], [entry["name"] for entry in mine]) for cell in found
                 if cell[0] in report.MODES}
        kept += [entry for entry in mine if entry["name"] in leads]
    return sorted(kept, key=lambda entry: (not entry["ours"], -report.speed(found, entry["name"], "one", TARGETS[1])))


def cell(found, name, mode, target):
    """A speed; with the recall on the queries measured, where that is not what it was tuned for on the others."""
    speed = report.shown(found, name, mode, target, "–")
    recall = found.get((mode, target), {}).get(name, {}).get("recall")
    return speed if recall is None or abs(recall - float(target)) <= OFF else f"{speed} ({recall:.3f})"


def natively(found):
    return any(mode == report.NATIVE for mode, _ in found)


def heads(record, found):
    """Records from before there were programs without Python, or calls measured, have no column for them."""
    names = ["", "version", "bytes per vector", "one query per call"]
    names += ["the same from C or C++"] if natively(found) else []
    names += ["a call costs, µs"] if record["summary"].get("calls") else []
    names += ["the batch call", "build, s"]
    return ["| " + " | ".join(names).strip() + " |", "|---|---|" + "---:|" * (len(names) - 2)]


def row(record, entry, found):
    def speeds(mode):
        cells = [cell(found, entry["name"], mode, target) for target in TARGETS]
        return " / ".join(cells) if any(one != "–" for one in cells) or mode != report.NATIVE else "–"

    us = report.call_us(record["summary"], entry["engine"])
    cells = [f"**{entry['name']}**" if entry["ours"] else entry["name"], entry["version"].split("+")[0],
             f"{entry['bytes_per_vector']:,.0f}", speeds("one")]
    cells += [speeds(report.NATIVE)] if natively(found) else []
    cells += [f"{us:.1f}" if us else "–"] if record["summary"].get("calls") else []
    return "| " + " | ".join([*cells, speeds("batch"), f"{entry['build_s']:,.0f}"]) + " |"


def paragraph(text):
    return textwrap.fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


def where(record):
    """The set, the machine, and what ours were held to."""
    isa = record["parameters"]["max_isa"]
    return f"{record['data']['name']} on {report.cpu(record['machine'])}" + (f", ours held to {isa}" if isa else "")


def about(record):
    """The line that says the question, the date, and how to read the numbers."""
    data, (named, _, changes) = record["data"], record["commit"].partition(" ")
    return (f"The set has {data['rows']:,} vectors of {data['dim']} elements, under {data['metric']}. The race ran on "
            f"one core on {record['date'][:10]}, at commit {' '.join([named[:12], changes]).strip()}. Speeds are queries a "
            f"second at recall@10 {' / '.join(TARGETS)}. A number in brackets is the recall measured, if it "
            f"differs from the one asked for by more than {OFF}.")


def left_out(record):
    """{reason: [variants of peers that could not take part]}."""
    found = {}
    for entry in record["contenders"]:
        if entry.get("skip") and not entry["ours"]:
            found.setdefault(entry["skip"], []).append(entry["name"])
    return found


def listed(head, found):
    """A table of who is missing, and why."""
    return "\n".join([f"| {head} | reason |", "|---|---|",
                      *(f"| {', '.join(names)} | {why} |" for why, names in found.items())])


def executed(kept):
    """A table of what single queries of each library execute; nothing for records from before it was counted."""
    rows = []
    for entry in kept:
        counts = entry.get("executed", {})
        if counts.get("own"):
            rows.append("| " + " | ".join([entry["name"], *(f"{share:.0f}" if share >= 1 or not share else f"{share:.1f}"
                                                            for share in per_thousand(counts).values())]) + " |")
    heads = ["of a thousand instructions, one query per call", "512 bits", "256 bits", "128 bits or one number",
             "dot products of bytes", "matrices", "prefetches"]
    return "\n".join(["| " + " | ".join(heads) + " |", "|---|" + "---:|" * 6, *rows]) if rows else ""


def notes(record):
    """The notes and tables that a reader of a race needs."""
    disturbed = record["summary"].get("disturbed", 0)
    if disturbed >= 0.01:
        yield paragraph("The core did something else for a twentieth of the time or more in "
                        f"{disturbed:.0%} of the timings.")
    if left_out(record):
        yield listed("not measured", left_out(record))
    reasons = report.no_native(record["contenders"])
    if reasons:
        yield listed("not from C or C++", reasons)
    asked = record["parameters"].get("engines", EVERYONE)
    if asked != EVERYONE:
        yield f"| who took part |\n|---|\n| {', '.join(word.strip() for word in asked.split(','))} |"


def markdown(stem, record):
    """Everything of one race, for a page in docs/."""
    found, place = report.lookup(record["summary"]), f"../{RESULTS}/{stem}"
    lines = [f"### {where(record)}", "", paragraph(about(record)), "", *heads(record, found)]
    kept = strongest(record["contenders"], found)
    lines += [row(record, entry, found) for entry in kept]
    for note in filter(None, [executed(kept), *notes(record)]):
        lines += ["", note]
    return "\n".join([*lines, "", f"Picture: [speed over recall]({place}.svg).", f"Record: [{stem}.json]({place}.json)."])


def leaders(entries, found):
    """Gives each library's fastest variant, one query a call, at the middle recall or else below it. The fastest
    library stands first."""
    def key(entry):
        return [report.speed(found, entry["name"], "one", target) for target in (TARGETS[1], TARGETS[0])]

    taking = [entry for entry in entries if not entry.get("skip")]
    best = [max((entry for entry in taking if entry["engine"] == engine), key=key)
            for engine in dict.fromkeys(entry["engine"] for entry in taking)]
    return sorted((entry for entry in best if any(key(entry))), key=key, reverse=True)


def front(stem, record):
    """One line a library of one race, for the README."""
    found = report.lookup(record["summary"])
    lines = [paragraph(f"The table shows {where(record)}. {about(record)}"), "",
             "| | bytes per vector | one query per call | the batch call | build, s |", "|---|---:|---:|---:|---:|"]
    for entry in leaders(record["contenders"], found):
        name = f"**{entry['name']}**" if entry["ours"] else entry["name"]
        speeds = [" / ".join(cell(found, entry["name"], mode, target) for target in TARGETS) for mode in report.MODES]
        lines.append(f"| {name} | {entry['bytes_per_vector']:,.0f} | {' | '.join(speeds)} | {entry['build_s']:,.0f} |")
    absent = sum(map(len, left_out(record).values()))
    if absent:
        lines += ["", f"Variants of peers that were not measured: {absent}; [why]({ALL}#the-races)."]
    return "\n".join([*lines, "", f"![Speed over recall]({RESULTS}/{stem}.svg)"])


def every(root):
    """The records that stand, as (name, record): by set, ours held to narrower instructions last, newest first."""
    paths = [path for path in (root / RESULTS).glob("peers-*.json") if not records.is_part(path)]
    found = [(path.stem, json.loads(path.read_text())) for path in paths]
    found.sort(key=lambda one: one[1]["date"], reverse=True)
    return sorted(found, key=lambda one: (one[1]["data"]["name"], one[1]["parameters"]["max_isa"]))


def newest(found):
    """The newest of the set that the README shows, with all instructions."""
    fitting = [one for one in found
               if one[1]["data"]["name"] == FRONT_SET and not one[1]["parameters"]["max_isa"]]
    if not fitting:
        sys.exit(f"bench peers: {RESULTS} has no record of {FRONT_SET}, which {FRONT} is to show")
    return max(fitting, key=lambda one: one[1]["date"])


def write(root):
    found = every(root)
    pages = {ALL: ("peers", "\n\n".join(markdown(*one) for one in found)),
             FRONT: ("peers-front", front(*newest(found)))}
    for name, (marks, tables) in pages.items():
        path = root / name
        path.write_text(between(path.read_text(), marks, tables))


def main():
    parser = argparse.ArgumentParser(prog="table.py")
    parser.add_argument("records", nargs="*", type=pathlib.Path, help=f"files to print (default: all of {RESULTS})")
    parser.add_argument("--write", action="store_true", help=f"write the tables of {RESULTS} into {ALL} and {FRONT}")
    chosen = parser.parse_args()
    if chosen.write and chosen.records:
        parser.error(f"--write takes what is in {RESULTS}, and no files")
    if chosen.write:
        write(ROOT)
        return
    found = [(path.stem, json.loads(path.read_text())) for path in chosen.records] or every(ROOT)
    print("\n\n".join(markdown(*one) for one in found))


if __name__ == "__main__":
    main()
