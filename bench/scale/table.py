"""Writes the tables of bench/results/scale.json between the marks of docs/SCALE.md: table.py --write. Else prints them."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import report  # noqa: E402
from setting import ROOT, between  # noqa: E402

RECORD, PAGE = "bench/results/scale.json", "docs/SCALE.md"
TABLES = {"scale-measured": report.measured_lines, "scale-laws": report.fit_lines, "scale-far": report.far_lines}


def about(record):
    machine, asked = record["machine"], record["parameters"]
    return (f"{machine['cpu']} ({machine['generation']}), {machine['cores']} cores, builds on {asked['threads']} "
            "threads, "
            f"rounds: {asked['rounds']}; load average {machine['load_average']:.1f} at the start; commit "
            f"{record['commit'][:8]}, {record['date'][:10]}.")


def main():
    record = json.loads((ROOT / RECORD).read_text())
    if "--write" not in sys.argv[1:]:
        print(report.text(record))
        return
    page = (ROOT / PAGE).read_text()
    for mark, lines in TABLES.items():
        page = between(page, mark, report.markdown(list(lines(record["summary"]))))
    (ROOT / PAGE).write_text(between(page, "scale-about", about(record)))


if __name__ == "__main__":
    main()
