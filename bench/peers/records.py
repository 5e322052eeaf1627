"""Decides which record stands: one of a set and a machine. A newer one takes the older one's place, whatever its
label."""

import json
import sys


def identity(record):
    """Gives the facts that two records share if one replaces the other."""
    machine = record["machine"]
    return (record["data"]["name"], machine["cpu"], machine.get("generation") or "",
            record["parameters"].get("max_isa", ""))


def is_part(path):
    """Tells whether it is a look at something, which stands for nothing and is not kept by git."""
    return path.stem.endswith("-part")


def refuse_other_machine(path, about):
    """Ends the run before it begins where its record would take the place of another machine's."""
    if path.exists():
        old = json.loads(path.read_text())
        if identity(old) != identity(about):
            machine = ", ".join(word for word in (old["machine"]["cpu"], old["machine"].get("generation")) if word)
            sys.exit(f"bench peers: {path} is the record of another machine ({machine}); name this one's by --label")


def replaced(results, path, about):
    """The other records of the same set and machine in the folder, where this one is a record and no part."""
    if is_part(path):
        return []
    others = [other for other in sorted(results.glob("peers-*.json")) if other != path and not is_part(other)]
    return [other for other in others if identity(json.loads(other.read_text())) == identity(about)]


def remove(path):
    """A record and its picture."""
    for one in (path, path.with_suffix(".svg")):
        one.unlink(missing_ok=True)
