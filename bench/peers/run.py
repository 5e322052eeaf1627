"""Races the libraries on one data set; see docs/internals/peers.md."""

import datetime
import json
import os
import pathlib
import signal
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import builds  # noqa: E402
import calls  # noqa: E402
import choose  # noqa: E402
import engines  # noqa: E402
import keep  # noqa: E402
import plot  # noqa: E402
import records  # noqa: E402
import report  # noqa: E402
from executed import is_narrow  # noqa: E402
from lineup import contenders  # noqa: E402
from options import options  # noqa: E402
from process import Lost  # noqa: E402
from setting import commit, machine  # noqa: E402
from sets import Data, K  # noqa: E402

TARGETS = (0.90, 0.95, 0.99)
MODES = ("one", "batch")
LEAST_RECALL = 0.5  # what finds less at its deepest was not built as it is meant to be


def note(text):
    print(f"bench peers: {text}", file=sys.stderr, flush=True)


def clocked(chosen, answer):
    """Gives the answer of a worker, with "qps" by the clock that was chosen."""
    return {**answer, "qps": answer["cpu_qps"], "wall_qps": answer["qps"]} if chosen.clock == "cpu" else answer


def ask(chosen, contender, *arguments, **more):
    return clocked(chosen, contender.ask(*arguments, **more))


def reaching(chosen, contender):
    """For each mode and target the settings that reach it on the queries for tuning, and all that was tried in batches.

    One measurement serves both modes if a library answers both alike.
    """
    seen = {mode: choose.Seen(lambda params, mode=mode: ask(chosen, contender, params, mode, "tune", 0, recall=True))
            for mode in MODES}
    found = {"batch": choose.candidates(contender.variant.sweep, seen["batch"], TARGETS)}
    differ = getattr(engines.engine(contender.engine), "MODES_DIFFER", False)
    found["one"] = choose.candidates(contender.variant.sweep, seen["one"], TARGETS) if differ else found["batch"]
    tried = list(seen["batch"].points.values())
    most = max(point["recall"] for point in tried)
    if most < LEAST_RECALL:
        raise Lost(f"finds {most:.4f} of the true neighbours with its deepest setting")
    return found, tried


def swept(chosen, contender):
    """Settings for each target and mode, chosen on the queries for tuning, and all that was tried."""
    kept = contender.folder.with_suffix(".sweep.json")
    if chosen.keep and kept.exists():
        return json.loads(kept.read_text())
    sweep = contender.variant.sweep
    if chosen.quick:
        sweep.grid = {name: values[::2] for name, values in sweep.grid.items()}
    found, tried = reaching(chosen, contender)
    seconds = chosen.seconds / 2
    timed = {mode: choose.Seen(lambda params, mode=mode: ask(chosen, contender, params, mode, "tune", seconds))
             for mode in MODES}
    settings = {mode: {f"{target:.2f}": choose.pick(found[mode][target], lambda p, mode=mode: timed[mode](p)["qps"])
                       for target in TARGETS} for mode in MODES}
    result = {"settings": settings, "tried": tried}
    for mode in MODES:
        for target, params in settings[mode].items():
            ends = sweep.ends(params) if params else []
            if ends:
                note(f"{contender.name}: {mode} {target} takes the largest {' and '.join(ends)} that is tried")
    result["pages"] = "huge" if chosen.quick else pages(chosen, contender, settings["one"])
    kept.write_text(json.dumps(result))
    return result


def pages(chosen, contender, settings):
    """Tells whether the library's memory is better with huge pages or small ones; each is tried thrice, by turns."""
    params = settings["0.95"] or settings["0.90"]
    if params is None:
        return "huge"
    speed = {"huge": [], "small": []}
    for trial in range(3):
        for kind in ("huge", "small") if trial % 2 else ("small", "huge"):
            contender.stop()
            contender.pages = kind
            speed[kind].append(ask(chosen, contender, params, "one", "tune", chosen.seconds)["qps"])
    contender.stop()
    return max(speed, key=lambda kind: statistics.median(speed[kind]))


def prepare(chosen, every):
    """Builds and tunes one after the other; those that cannot take part keep their reason."""
    for contender in every:
        if not contender.skip:
            note(f"{contender.name}: building")
            contender.build()
        if contender.skip:
            note(f"{contender.name}: skipped: {contender.skip}")
            continue
        try:
            note(f"{contender.name}: {contender.built['build_s']:.0f} s; tuning")
            contender.tuned = swept(chosen, contender)
            contender.pages = contender.tuned["pages"]
        except Lost as why:
            contender.skip = str(why)
            note(f"{contender.name}: skipped: {why}")
        contender.stop()
    return [contender for contender in every if not contender.skip]


def make_room(chosen, racing, next_one):
    """Stops those that ran longest ago until the next fits beside the rest."""
    def size(contender):
        return contender.loaded.get("resident", contender.built["bytes"])

    loaded = [c for c in racing if c.worker is not None and c is not next_one]
    while loaded and sum(map(size, loaded)) + size(next_one) > chosen.memory * 1e9:
        first = min(loaded, key=lambda c: c.turn)
        first.stop()
        loaded.remove(first)


def turn(chosen, contender, number):
    """Measures one library in one round, at every target in both modes."""
    events = []
    for mode in MODES:
        for target, params in contender.tuned["settings"][mode].items():
            if params is not None:
                events.append({"name": contender.name, "mode": mode, "target": target, "round": number,
                               **ask(chosen, contender, params, mode, "measure", chosen.seconds, recall=number == 0)})
    return events


def native_turn(chosen, contender, number):
    """The same settings of one query a call without Python, where the library's program is there."""
    settings = {target: params for target, params in contender.tuned["settings"]["one"].items() if params}
    if not settings or isinstance(contender.native, str):
        return []
    try:
        answers = contender.ask_native(settings, chosen.seconds, number == 0)
    except Lost as why:
        contender.native = str(why)
        note(f"{contender.name}: without Python: {why}")
        return []
    return [{"name": contender.name, "mode": report.NATIVE, "target": target, "round": number,
             **clocked(chosen, answer)} for target, answer in answers.items()]


def race(chosen, racing, calling):
    """Rounds in which every library has its turn, each time beginning with another; and what a call costs each."""
    events, called, turns = [], [], 0
    for contender in racing:
        contender.turn = 0
    for number in range(chosen.rounds):
        shift = number * max(1, len(racing) // chosen.rounds) % max(1, len(racing))
        order = racing[shift:] + racing[:shift]
        for contender in order if number % 2 == 0 else order[::-1]:
            if contender.skip:
                continue
            turns += 1
            contender.turn = turns
            make_room(chosen, racing, contender)
            try:
                events += turn(chosen, contender, number) + native_turn(chosen, contender, number)
            except Lost as why:
                contender.skip = str(why)
                note(f"{contender.name}: dropped: {why}")
        called += calls.measured(chosen, calling, number, lambda *order: ask(chosen, *order))
        note(f"round {number + 1} of {chosen.rounds}")
    for contender in racing:
        contender.stop()
    return [event for event in events if event["name"] not in {c.name for c in racing if c.skip}], called


def executed(contender):
    """Counts the instructions of single queries at the settings of the race, and notes fast kernels that do not run."""
    settings = contender.tuned["settings"]["one"]
    params = next((settings[target] for target in ("0.95", "0.90", "0.99") if settings.get(target)), None)
    if params is None:
        return {"why": "it reaches no target"}
    counts = contender.executed(params)
    contender.stop()
    if "why" in counts:
        note(f"{contender.name}: instructions are not counted: {counts['why']}")
    elif is_narrow(counts):
        note(f"{contender.name}: hardly a vector instruction is wider than 128 bits; kernels of AVX2 or AVX-512 do not run")
    return counts


def record(contender, rows):
    about = {"name": contender.name, "engine": contender.engine, "variant": contender.variant.name,
             "version": contender.version, "build": contender.variant.settings, "ours": contender.ours}
    if contender.skip:
        return {**about, "skip": contender.skip}
    return {**about, "build_s": contender.built["build_s"], "bytes_per_vector": contender.built["bytes"] / rows,
            "resident_per_vector": contender.loaded.get("resident", 0) / rows, "load_s": contender.loaded.get("load_s"),
            "no_native": contender.native if isinstance(contender.native, str) else "",
            "executed": executed(contender),
            "settings": contender.tuned["settings"], "pages": contender.tuned["pages"],
            "curve": choose.curve(contender.tuned["tried"])}


def ending(chosen, isa):
    """Gives the end of a record's name, behind the data set."""
    part = "".join("-" + word for word in (isa, chosen.label) if word)
    some = chosen.engines != ",".join(engines.NAMES) and not chosen.record
    return part + ("-part" if chosen.quick or some or chosen.clock == "cpu" else "")


def main():
    chosen = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench peers: ended"))  # and with it what it had started
    isa = os.environ.get("SHORTLIST_MAX_ISA", "")  # holds ours to narrower instructions, no peer
    folder = pathlib.Path("data") / chosen.dataset.replace(":", "-")
    data = Data(folder, chosen.metric)
    data.verify()
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "commit": commit(),
             "machine": machine(),
             "data": {"name": data.name, "metric": data.metric, "rows": data.count, "dim": data.dim,
                      "type": data.raw.dtype.name, "queries": len(data.raw_queries), "sha256": data.checksum()},
             "parameters": {"k": K, "engines": chosen.engines, "label": chosen.label, "rounds": chosen.rounds,
                            "seconds": chosen.seconds, "clock": chosen.clock, "max_isa": isa, "cpu": chosen.cpu,
                            "build_threads": chosen.threads, "build_rounds": chosen.build_rounds,
                            "build_limit": chosen.build_limit, "memory": chosen.memory}}
    path = chosen.results / f"peers-{data.name}{ending(chosen, isa)}.json"
    if not chosen.prepare and not records.is_part(path):
        records.refuse_other_machine(path, about)
    every = contenders(chosen, data, chosen.engines)
    racing = prepare(chosen, every)
    calling = calls.callers(chosen, data, racing)
    if chosen.prepare:
        return
    built = builds.measured(chosen, racing)
    events, called = race(chosen, racing, calling)
    entries = [record(contender, data.count) for contender in every]
    summary = {**report.summarise(about["data"], entries, events, isa), "calls": report.calls(called),
               "builds": report.builds(entries, built)}
    chosen.results.mkdir(parents=True, exist_ok=True)
    keep.record(path, {**about, "summary": summary, "contenders": entries})
    for old in records.replaced(chosen.results, path, about):
        note(f"{old} leaves: {path.name} is of the same set and machine")
        records.remove(old)
    plot.draw(about, entries, path.with_suffix(".svg"))
    print(report.table(about, entries, summary))


if __name__ == "__main__":
    main()
