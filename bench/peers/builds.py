"""The race of builds: rounds in which every variant is built anew, each round beginning with another one."""

import sys

from process import Lost


def note(text):
    print(f"bench peers: building again: {text}", file=sys.stderr, flush=True)


def measured(chosen, racing):
    """For each round and variant the seconds by the clock and those of all its threads."""
    events = []
    for number in range(chosen.build_rounds):
        shift = number % max(1, len(racing))
        for contender in racing[shift:] + racing[:shift]:
            try:
                built = contender.build_again()
            except Lost as why:
                note(f"{contender.name}: {why}")
                continue
            events.append({"name": contender.name, "round": number, "build_s": built["build_s"],
                           "cpu_s": built["cpu_s"]})
        note(f"round {number + 1} of {chosen.build_rounds}")
    return events
