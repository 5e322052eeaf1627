"""Who takes part: every variant of every library, or those that --engines names."""

import importlib.metadata
import os
import pathlib
import sys

import engines
from contender import Contender
from engines.base import skipped


def version(package, prefix):
    """The version of a package in an environment; "": it is not there."""
    paths = [str(path) for path in pathlib.Path(prefix).glob("lib*/python*/site-packages")]
    found = importlib.metadata.distributions(name=package, path=paths)
    return next((distribution.version for distribution in found), "")


def wanted(words, names):
    """Gives the names that the words stand for: a library, a whole name, or how some names begin."""
    return [name for name in names
            if any(name == word if word in names else name.startswith(word if " " in word else word + " ")
                   for word in words)]


def refuse_unknown(words):
    unknown = [word for word in words if word.split(" ")[0] not in engines.NAMES]
    if unknown:
        sys.exit(f"bench peers: no library '{unknown[0]}'; there are {', '.join(engines.NAMES)}")


def version_of(name, library, folder):
    of = version(library.PACKAGE, engines.prefix(name, folder))
    if name == "shortlist":  # what it was built of, as peers.sh says: its version number alone does not tell
        of += "+" + os.environ.get("SHORTLIST_MODULE_KEY", "unknown")
        # And what it was tuned on: how much faster scans are than walks differs between instruction sets.
        of += "+" + os.environ["SHORTLIST_MAX_ISA"] if "SHORTLIST_MAX_ISA" in os.environ else ""
    return of


def contenders(chosen, data, asked):
    words = [word.strip() for word in asked.split(",")]
    refuse_unknown(words)
    key, found = data.checksum(), []
    for name in engines.NAMES:
        if not any(word == name or word.startswith(name + " ") for word in words):
            continue
        try:
            library = engines.engine(name)
        except ImportError as problem:
            found.append(Contender(chosen, data, name, skipped("all", f"cannot be loaded: {problem}"), "", key))
            continue
        of = version_of(name, library, chosen.environments)
        if not of and name in engines.APART:
            found.append(Contender(chosen, data, name, skipped("all", f"{library.PACKAGE} is not installed"), "", key))
            continue
        variants = {f"{name} {variant.name}": variant for variant in library.variants(data)}
        found += [Contender(chosen, data, name, variants[one], of, key) for one in wanted(words, variants)]
    return found
