"""The options of ./dev bench build. This file needs nothing that is fetched, so that --help fetches nothing."""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from setting import options_of  # noqa: E402

SETS = ("glove100", "gloss384", "synth")


def options():
    parser = options_of("build")
    parser.add_argument("sets", nargs="*", default=list(SETS), help="of ./dev data, or synth; default: all three")
    parser.add_argument("--rows", type=int, default=150_000, help="of each set, evenly drawn; 0: all (150000)")
    parser.add_argument("--synth", type=int, default=100_000, metavar="N", help="rows of synth (100000)")
    parser.add_argument("--rounds", type=int, default=3, help="in which all take turns (3)")
    parser.add_argument("--threads", type=int, default=2, help="of every build (2)")
    parser.add_argument("--codes", default="i4", help="of our indexes (i4)")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="ours alone")
    parser.add_argument("--quick", action="store_true", help="one round of 20,000 rows, into build-part.json")
    parser.add_argument("--failed", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.rows, chosen.synth = 1, 20_000, 20_000
    if chosen.rounds < 1 or chosen.threads < 1 or chosen.synth < 5000 or chosen.rows < 0 or 0 < chosen.rows < 5000:
        parser.error("ask for a round or more, a thread or more, and 5,000 rows or more; --rows 0 takes all")
    unknown = [name for name in chosen.sets if name not in SETS]
    if unknown:
        parser.error(f"no set {', '.join(unknown)}; there are {', '.join(SETS)}")
    chosen.work = chosen.build / "builds"
    return chosen


if __name__ == "__main__":
    options()
