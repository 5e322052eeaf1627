"""Puts sets through runbooks of inserts, deletes, replaces and searches; see docs/internals/bench-living.md."""

import datetime
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "peers"), str(HERE.parent)]

import beside  # noqa: E402
import keep  # noqa: E402
import libraries  # noqa: E402
import numpy  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
import runbooks  # noqa: E402
import truth  # noqa: E402
from contender import ONE_THREAD  # noqa: E402
from lineup import version  # noqa: E402
from options import books_of, links_of, live_of, options  # noqa: E402
from process import Lost, Worker  # noqa: E402
from records import refuse_other_machine  # noqa: E402
from setting import commit, machine  # noqa: E402
from sets import Data, read_matrix  # noqa: E402

TARGETS = {"book": (0.99,), "churn": (0.95, 0.99)}  # recalls that choose the depths of searches
TUNED_WITH = 500  # queries
FORM = 2  # of the whole record; --only goes on from one of the same form
PACKAGES = {"shortlist": "shortlist", "hnswlib": "hnswlib", "usearch": "usearch", "faiss": "faiss-cpu",
            "diskann": "diskannpy"}


def note(text):
    print(f"bench living: {text}", file=sys.stderr, flush=True)


class Book:
    """A runbook over the rows of a set, with the files that workers read."""

    def __init__(self, chosen, data, name):
        self.name, self.churns = name, name in runbooks.CHURN
        live = live_of(chosen, name) if self.churns else 0
        wanted = live * (3 if name == "generations" else 11) if self.churns else chosen.rows
        self.rows = truth.Rows(data, wanted, chosen.work)
        self.operations = runbooks.make(name, len(self.rows), live)
        self.room = runbooks.most_live(self.operations)
        self.count = chosen.churn_queries if self.churns else chosen.queries
        self.count = min(self.count, len(read_matrix(self.rows.queries["measure"])))
        self.targets = TARGETS["churn" if self.churns else "book"]
        self.path = self.rows.folder / f"{name}-{live}.npz"
        runbooks.save(self.path, self.operations)
        note(f"{data.name}: {name}: truth")
        self.truth = truth.of_runbook(self.rows, self.operations, self.count, chosen.data / "living")

    def about(self):
        return {"operations": len(self.operations), "rows": len(self.rows), "most_live": self.room,
                "queries": self.count, **runbooks.counted(self.operations)}


def live_file(book):
    """The last of the largest sets of live vectors of a runbook, with the truth of queries that tune."""
    path = book.path.with_suffix(".live.npz")
    ids, rows = max(reversed(runbooks.searches(book.operations)), key=lambda live: len(live[0]))
    queries = read_matrix(book.rows.queries["tune"])[:TUNED_WITH]
    near = truth.nearest(book.rows.rows[rows], ids, queries, book.rows.metric)
    numpy.savez(path, ids=ids, rows=rows, truth=near.astype(numpy.uint32))
    return path


class Driver:
    def __init__(self, chosen, data):
        self.chosen, self.data = chosen, data
        self.instructions = chosen.build / "bench/peers/native/native_instructions"

    def events(self, library, book, **more):
        """The lines of a worker until its end. If the library fails, the last one says why."""
        apart = library in libraries.APART
        environment = self.chosen.build / f"peers/{library}-venv"
        python = environment / "bin/python" if apart else sys.executable
        order = {"library": library, "base": str(book.rows.base), "metric": book.rows.metric,
                 "queries": {part: str(path) for part, path in book.rows.queries.items()}, "room": book.room,
                 "m": links_of(self.data.name), "cpu": self.chosen.cpu, "rounds": self.chosen.rounds, **more}
        log = self.chosen.work / f"{library}.log"
        said = []
        try:
            talker = Worker([str(python), str(HERE / "runner.py"), json.dumps(order)],
                            {**os.environ, **ONE_THREAD}, log)
            while not said or said[-1]["event"] != "end":
                said.append(talker.answer())
            talker.stop()
        except Lost as why:
            return [*said, {"event": "failed", "why": str(why)}]
        return said

    def tuned(self, library, book, counts):
        """Depths of searches that reach the targets, and what the library told of itself. `counts`: instructions too."""
        count = str(self.instructions.resolve()) if self.instructions.exists() else ""
        said = self.events(library, book, targets=book.targets, live=str(live_file(book)), instructions=count,
                           counts=counts)
        if said[-1]["event"] == "failed":
            return said[-1]
        about = next(event for event in said if event["event"] == "tuned")
        return {**about, "depths": [report.least_depth(about["tried"], target) for target in book.targets]}

    def library(self, name, books):
        """All runbooks of one library. Each has its depths."""
        note(f"{self.data.name}: {name}")
        found = {"library": name, "version": version(PACKAGES[name], self.prefix(name)), "books": {}}
        for book in books:
            note(f"{self.data.name}: {name}: {book.name}")
            tuned = self.tuned(name, book, counts=not (book.churns or self.chosen.quick or "book" in found))
            if tuned["event"] == "failed":
                note(f"{name} is left out: {tuned['why']}")
                return {**found, "failed": tuned["why"]}
            found.setdefault("churn" if book.churns else "book", tuned)
            events = self.events(name, book, runbook=str(book.path), truth=str(book.truth), count=book.count,
                                 depths=[one["depth"] for one in tuned["depths"]], memory=not book.churns)
            searches = len(runbooks.searches(book.operations))
            found["books"][book.name] = {**report.book(events, self.chosen.clock, searches), "tuned": tuned["depths"]}
        return found

    def prefix(self, name):
        return self.chosen.build / f"peers/{name}-venv" if name in libraries.APART else sys.prefix


def measured(chosen, name, path):
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "commit": commit(),
             "machine": machine()}
    data = Data(chosen.data / name)
    m = links_of(name)
    parameters = {"m": m, **{key: getattr(chosen, key) for key in ("rows", "rounds", "clock", "quick")}}
    about = {**about, "data": {"name": name, "metric": data.metric, "dim": data.dim}, "parameters": parameters}
    refuse_other_machine(path, about)
    whole = chosen.work / path.name
    kept = json.loads(whole.read_text()) if chosen.only and whole.exists() else {}
    kept = kept if kept.get("form") == FORM else {}  # of an older program
    parts = {"runbooks": lambda: all_books(chosen, data), "beside": lambda: {"beside": beside.measured(chosen, data, m)}}
    made = kept.get("made", {})
    for part in [chosen.only] if chosen.only else parts:
        kept.update(parts[part]())
        made[part] = {key: about[key] for key in ("date", "commit")}
    return {**kept, **about, "made": made, "form": FORM}


def all_books(chosen, data):
    """Every library through every runbook."""
    books = [Book(chosen, data, book) for book in books_of(chosen, data.name)]
    driver = Driver(chosen, data)
    failed = dict(word.split(":", 1) for word in filter(None, chosen.failed.split(";")))
    found = [{"library": library, "failed": failed[library], "books": {}} if library in failed else
             driver.library(library, books) for library in chosen.libraries]
    return {"runbooks": {book.name: book.about() for book in books}, "libraries": found}


def main():
    chosen = options()
    for folder in (chosen.work, chosen.results):
        folder.mkdir(parents=True, exist_ok=True)
    for name in chosen.sets:
        stem = f"living-{name}" + (f"-{chosen.label}" if chosen.label else "") + ("-part" if chosen.part else "")
        path = chosen.results / f"{stem}.json"
        record = measured(chosen, name, path)
        record["targets"] = report.facts(record)
        (chosen.work / path.name).write_text(json.dumps(record))  # for --only; the tree keeps less
        keep.record(path, report.small(record))
        plot.draw(record, path.with_suffix(".svg"))
        print(report.table(record))


if __name__ == "__main__":
    main()
