"""Prints the Markdown tables of the races that are recorded, or writes them between the marks in a file."""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import engines  # noqa: E402
import report  # noqa: E402

BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
TARGETS = ("0.90", "0.95", "0.99")
OFF = 0.005
EVERYONE = ",".join(engines.NAMES)


def strongest(entries, found):
    """Of each library the variants that are its fastest somewhere, ours first, then by speed at the middle recall."""
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
    names = ["", "version", "bytes a vector", "one query a call"]
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


def markdown(record):
    data, found = record["data"], report.lookup(record["summary"])
    named, _, changes = record["commit"].partition(" ")
    isa = record["parameters"]["max_isa"]
    held = f", ours held to {isa}" if isa else ""
    lines = [f"#### {data['name']}: {data['rows']:,} × {data['dim']}, {data['metric']}{held}", "",
             f"{report.cpu(record['machine'])}, one core; {record['date'][:10]}, commit "
             f"{' '.join([named[:12], changes]).strip()}. Queries a second at recall@10 {' / '.join(TARGETS)}; in "
             f"brackets the recall measured where it is off by more than {OFF}.", "",
             *heads(record, found)]
    for entry in strongest(record["contenders"], found):
        lines.append(row(record, entry, found))
    disturbed = report.disturbed(record.get("rounds", []))
    if disturbed >= 0.01:
        lines += ["", f"In {disturbed:.0%} of the timings the core did something else for a twentieth of the time or more."]
    left_out = [f"{entry['name']} ({entry['skip']})" for entry in record["contenders"]
                if entry.get("skip") and not entry["ours"]]
    if left_out:
        lines += ["", "Not measured: " + "; ".join(left_out) + "."]
    reasons = report.no_native(record["contenders"])
    if reasons:
        lines += ["", "Not from C or C++: " + "; ".join(f"{', '.join(libraries)} ({why})"
                                                       for why, libraries in reasons.items()) + "."]
    asked = record["parameters"].get("engines", EVERYONE)
    if asked != EVERYONE:
        lines += ["", "Who took part: " + ", ".join(word.strip() for word in asked.split(",")) + "."]
    return "\n".join(lines)


def between(text, tables):
    """text with what stands between the marks replaced."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"bench peers: the file has to hold the line '{BEGIN}' and after it '{END}', each once")
    return text[:text.index(BEGIN) + len(BEGIN)] + "\n" + tables + "\n" + text[text.index(END):]


def main():
    parser = argparse.ArgumentParser(prog="table.py")
    parser.add_argument("records", nargs="*", type=pathlib.Path, help="JSON files (default: all of bench/results)")
    parser.add_argument("--write", type=pathlib.Path, help="the file whose marked part is replaced, as README.md")
    chosen = parser.parse_args()
    records = chosen.records or sorted(path for path in pathlib.Path("bench/results").glob("peers-*.json")
                                       if not path.stem.endswith("-part"))
    tables = "\n\n".join(markdown(json.loads(path.read_text())) for path in records)
    if chosen.write:
        chosen.write.write_text(between(chosen.write.read_text(), tables))
    else:
        print(tables)


if __name__ == "__main__":
    main()
