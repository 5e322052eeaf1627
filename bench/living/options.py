"""The options of ./dev bench living. This file needs nothing that is fetched, so that --help fetches nothing."""

import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from books import CHURN, CHURN_OF, STREAMS  # noqa: E402
from setting import options_of  # noqa: E402

NAMES = ("shortlist", "hnswlib", "usearch", "faiss", "diskann")
LINKS = {"glove100": 32}  # m of a set; others: 16


def words(text):
    return text.split(",")


def options():
    parser = options_of("living", "runbooks", "beside")
    parser.add_argument("sets", nargs="*", default=["glove100", "gloss384"], help="of ./dev data; default: both")
    parser.add_argument("--runbooks", type=words, metavar="A,B",
                        help=f"{','.join(STREAMS)},generations,turnover; default: the first four, generations of "
                             "glove100 and turnover of gloss384")
    parser.add_argument("--libraries", type=words, default=list(NAMES), metavar="A,B", help=",".join(NAMES))
    parser.add_argument("--rows", type=int, default=20_000, help="of the first four runbooks (20000)")
    parser.add_argument("--live", type=int, default=0, help="of generations and turnover (10000 and 5000)")
    parser.add_argument("--queries", type=int, default=300, help="a search of the first four; others ask 1,000 (300)")
    parser.add_argument("--rounds", type=int, default=5, help="in which an index and a fresh one take turns (5)")
    parser.add_argument("--live-beside", type=int, default=20_000, metavar="N",
                        help="live vectors that are searched beside a writer (20000)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a window of searches beside a writer (1)")
    parser.add_argument("--one-handle", choices=("auto", "yes", "no"), default="auto",
                        help="whether threads may change our handle while others search it; auto: as shortlist.h says")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: ratios by the processor's time, which other programs disturb less")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the core of all")
    parser.add_argument("--quick", action="store_true", help="few vectors and queries, into living-SET-part.json")
    parser.add_argument("--label", default="", help="a word behind the record's name, for another machine's")
    parser.add_argument("--failed", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    chosen.churn_queries = 1000
    if chosen.quick:
        chosen.rows, chosen.live, chosen.queries, chosen.churn_queries = 4000, chosen.live or 1500, 100, 200
        chosen.rounds, chosen.live_beside, chosen.seconds = min(chosen.rounds, 3), 4000, min(chosen.seconds, 0.3)
    for name, given, known in (("runbook", chosen.runbooks or [], (*STREAMS, *CHURN)),
                               ("library", chosen.libraries, NAMES)):
        unknown = [word for word in given if word not in known]
        if unknown:
            parser.error(f"no {name} {', '.join(unknown)}; there are {', '.join(known)}")
    if min(chosen.rows, 2000 * chosen.rounds) < 2000 or chosen.queries < 1 or 0 < chosen.live < 500:
        parser.error("ask for 2,000 rows or more, 500 live vectors or more, a round and a query")
    chosen.part = chosen.quick or chosen.libraries != list(NAMES) or chosen.runbooks is not None
    chosen.work = chosen.build / "living"
    return chosen


def books_of(chosen, name):
    """The runbooks that a set is put through."""
    return chosen.runbooks or [*STREAMS, CHURN_OF.get(name, "generations")]


def links_of(name):
    return LINKS.get(name, 16)


def live_of(chosen, book):
    return chosen.live or (10_000 if book == "generations" else 5_000)


if __name__ == "__main__":
    options()
