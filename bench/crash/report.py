"""From what the tests of durability print to counts and verdicts."""

import re

from setting import fact, verdicts

WAYS = {"by a log": "log", "directly": "direct"}
IMAGES = re.compile(r"^(by a log|directly): (\d+) crash images of (\d+) operations, (\d+) violations$", re.MULTILINE)
KILLS = re.compile(r"^(\d+) kills: nothing acknowledged was lost; (\d+) had synced more than they lived to tell$",
                   re.MULTILINE)


def images_of(asked, ran):
    """By way of writing. A way whose line is missing, or tells of fewer images, did not end, and counts as violated."""
    found = {WAYS[way]: {"images": int(images), "operations": int(operations), "violations": int(violations)}
             for way, images, operations, violations in IMAGES.findall(ran["output"])}
    for way in WAYS.values():
        if found.get(way, {}).get("images") != asked:
            found[way] = {**found.get(way, {"images": 0, "operations": 0}), "violations": asked}
    return found


def summarise(images, crash, kills, kill):
    """`crash` and `kill` are the runs of the two tests: output, status, seconds."""
    told = KILLS.search(kill["output"])
    survived = kill["status"] == 0 and told is not None and int(told[1]) == kills
    ways = images_of(images, crash)
    summary = {"images": {**ways, "seconds": crash["seconds"], "passed": crash["status"] == 0},
               "kills": {"kills": kills, "passed": survived, "seconds": kill["seconds"],
                         "synced_untold": int(told[2]) if told else None},
               # What the first fault was.
               "output": "" if crash["status"] == 0 and survived else (crash["output"] + kill["output"])[-4000:]}
    summary["targets"] = [fact(f"crash images written {way}, violations", 0, ways[way]["violations"], False)
                          for way in WAYS.values()]
    # The test also has to notice files that were not synced, and its images must find what was found before.
    summary["targets"].append(fact("its other checks, failed", 0, int(crash["status"] != 0), False))
    summary["targets"].append(fact("kills, acknowledged vectors lost or files broken", 0, int(not survived), False))
    return summary


def table(summary):
    lines = [""]
    for way in WAYS.values():
        row = summary["images"][way]
        lines.append(f"written {way:7} {row['images']:8} crash images of {row['operations']} operations, "
                     f"{row['violations']} violations")
    kills = summary["kills"]
    lines += [f"{'both':15} {summary['images']['seconds']:8.0f} s",
              f"{'killed':15} {kills['kills']:8} times in {kills['seconds']:.0f} s: "
              f"{'nothing acknowledged was lost' if kills['passed'] else 'FAILED'}", ""]
    return "\n".join(lines + verdicts(summary["targets"]) + ([summary["output"]] if summary["output"] else []))
