"""The options of ./dev bench peers. This file needs nothing that is fetched, so that --help fetches nothing."""

import argparse
import os
import pathlib

import engines


def options(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench peers")
    parser.add_argument("dataset", nargs="?", default="glove100", help="a folder of data/ (default: glove100)")
    parser.add_argument("--metric", choices=("cosine", "ip", "l2"), help="of a data set that sets.py does not know")
    parser.add_argument("--engines", default=",".join(engines.NAMES),
                        help="of " + ", ".join(engines.NAMES) + "; or variants' names, as 'hnswlib M=16', or how they "
                        "begin, as 'hnswlib M'")
    parser.add_argument("--rounds", type=int, default=5, help="of the race, in which the libraries take turns")
    parser.add_argument("--seconds", type=float, default=0.3, help="that a single timing lasts at least")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the builds")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the searches are pinned to")
    parser.add_argument("--build-limit", type=float, default=1200, help="seconds a build may take")
    parser.add_argument("--build-rounds", type=int, default=0,
                        help="of a race of builds, in which every variant is built anew, by turns")
    parser.add_argument("--memory", type=float, default=6, help="GB of indexes kept loaded between rounds")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/peers/index"))
    parser.add_argument("--environments", type=pathlib.Path, default=pathlib.Path("build/peers"), help=argparse.SUPPRESS)
    parser.add_argument("--native", type=pathlib.Path, default=pathlib.Path("build/bench/peers/native"),
                        help=argparse.SUPPRESS)
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("bench/results"))
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: count the processor's time, which other programs disturb less")
    parser.add_argument("--quick", action="store_true", help="two rounds, few settings, no choice of page size")
    parser.add_argument("--record", action="store_true",
                        help="keep the record, also of a part, under the data set's name; tables then say who took "
                        "part. Records of the same set and machine leave")
    parser.add_argument("--label", default="", help="a word behind the record's name, for another machine's")
    parser.add_argument("--keep", action="store_true", help="settings of the run before, where there are any")
    parser.add_argument("--prepare", action="store_true",
                        help="build and tune alone, for a later run with --keep; so that a long race goes in parts")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        chosen.rounds, chosen.seconds = min(chosen.rounds, 2), 0.15
    return chosen


if __name__ == "__main__":
    options()
