"""Measures the cost of one call of each binding: one query a call of an index of few vectors, at the least settings.

An index of a few dozen vectors is searched in a microsecond or two: what is left is the call. Each library takes the
first of its variants that can be made of so few.
"""

import sys

from lineup import contenders
from process import Lost


def note(text):
    print(f"bench peers: a call of {text}", file=sys.stderr, flush=True)


def caller(of_one):
    """The first of one library's variants that is built of few vectors and answers."""
    why = "no variant"
    for contender in of_one:
        if not contender.skip:
            contender.build()
        if not contender.skip:
            try:
                contender.start()
                contender.stop()
                return contender
            except Lost as problem:
                contender.skip = str(problem)
        why = contender.skip
    note(f"{of_one[0].engine}: not measured: {why}")
    return None


def callers(chosen, data, racing):
    """One contender a library that takes part."""
    few = data.few(chosen.work / f"{data.name}-few")
    every = {}
    for contender in contenders(chosen, few, ",".join(dict.fromkeys(c.engine for c in racing))):
        every.setdefault(contender.engine, []).append(contender)
    return [found for found in map(caller, every.values()) if found]


def measured(chosen, calling, number, ask):
    """One round: microseconds a call."""
    events = []
    for contender in calling:
        sweep = contender.variant.sweep
        try:
            answer = ask(contender, {sweep.key: sweep.low, **sweep.combinations()[0]}, "one", "measure", chosen.seconds)
        except Lost as why:
            note(f"{contender.engine}: round {number}: {why}")
            continue
        contender.stop()
        events.append({"engine": contender.engine, "variant": contender.variant.name, "round": number,
                       "us": 1e6 / answer["qps"]})
    return events
