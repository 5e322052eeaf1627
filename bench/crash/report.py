"""From what the tests of durability print to counts and verdicts."""

import re

from setting import fact, verdicts

WAYS = {"by a log": "log", "directly": "direct"}
LAYOUTS = ("arrays", "records")
IMAGES = re.compile(r"^(by a log|directly): (\d+) crash images of (\d+) operations, (\d+) violations$", re.MULTILINE)
KILLS = re.compile(r"^(\d+) kills: nothing acknowledged was lost; (\d+) had synced more than they lived to tell$",
                   re.MULTILINE)


def images_of(asked, ran):
    """Gives the counts by way of writing. A way whose line is missing, or tells of fewer images, counts as violated."""
    found = {WAYS[way]: {"images": int(images), "operations": int(operations), "violations": int(violations)}
             for way, images, operations, violations in IMAGES.findall(ran["output"])}
    for way in WAYS.values():
        if found.get(way, {}).get("images") != asked:
            found[way] = {**found.get(way, {"images": 0, "operations": 0}), "violations": asked}
    return found


def summarise(images, crashes, kills, kill):
    """`crashes` has a run of the test of images for each layout, `kill` is that of the kills: output, status, seconds."""
    told = KILLS.search(kill["output"])
    survived = kill["status"] == 0 and told is not None and int(told[1]) == kills
    ways = {layout: images_of(images, crashes[layout]) for layout in LAYOUTS}
    passed = all(crash["status"] == 0 for crash in crashes.values())
    summary = {"images": {**ways, "seconds": round(sum(crash["seconds"] for crash in crashes.values()), 1),
                          "passed": passed},
               "kills": {"kills": kills, "passed": survived, "seconds": kill["seconds"],
                         "synced_untold": int(told[2]) if told else None},
               # The first fault.
               "output": "" if passed and survived else
                         ("".join(crash["output"] for crash in crashes.values()) + kill["output"])[-4000:]}
    summary["targets"] = [fact(f"crash images of {layout} written {way}, violations", 0,
                               ways[layout][way]["violations"], False)
                          for layout in LAYOUTS for way in WAYS.values()]
    # The test also has to notice files that were not synced, and its images must find what was found before.
    summary["targets"].append(fact("its other checks, failed", 0, int(not passed), False))
    summary["targets"].append(fact("kills, acknowledged vectors lost or files broken", 0, int(not survived), False))
    return summary


def table(summary):
    lines = [""]
    for layout in LAYOUTS:
        for way in WAYS.values():
            row = summary["images"][layout][way]
            lines.append(f"{layout:8}{way:7} {row['images']:8} crash images of {row['operations']} operations, "
                         f"{row['violations']} violations")
    kills = summary["kills"]
    lines += [f"{'all':15} {summary['images']['seconds']:8.0f} s",
              f"{'killed':15} {kills['kills']:8} times in {kills['seconds']:.0f} s: "
              f"{'nothing acknowledged was lost' if kills['passed'] else 'FAILED'}", ""]
    return "\n".join(lines + verdicts(summary["targets"]) + ([summary["output"]] if summary["output"] else []))
