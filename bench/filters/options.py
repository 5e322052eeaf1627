"""The options of ./dev bench filters. This file needs nothing that is fetched, so that --help fetches nothing."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from setting import options_of  # noqa: E402

SHARES = (0.5, 0.1, 0.03, 0.01, 0.001, 0.0001)
KINDS = ("near", "chance", "far")


def options():
    parser = options_of("filters")
    parser.add_argument("sets", nargs="*", default=["glove100", "gloss384"], help="of ./dev data; default: both")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="allowed, in parts of 1")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="where the queries lie")
    parser.add_argument("--rounds", type=int, default=7, help="in which all take turns")
    parser.add_argument("--seconds", type=float, default=0.02, help="that a turn lasts at least")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: count the processor's time, which other programs disturb less")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the searches are pinned to")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the builds")
    parser.add_argument("--codes", default="i4", help="of our index")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="ours and the scan alone")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    parser.add_argument("--keep", action="store_true", help="our index of the run before, whatever changed since")
    parser.add_argument("--prepare", action="store_true", help="build the indexes and stop")
    chosen = parser.parse_args()
    chosen.rounds = min(chosen.rounds, 3) if chosen.quick else chosen.rounds
    chosen.work, chosen.native = chosen.build / "filters", chosen.build / "bench/peers/native"
    return chosen


if __name__ == "__main__":
    options()
