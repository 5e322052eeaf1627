"""The options of ./dev bench scale. This file needs nothing that is fetched, so that --help fetches nothing."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from setting import options_of  # noqa: E402

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
BUILDERS = ("leaves", "insert")


def options():
    parser = options_of("scale")
    parser.add_argument("--most", type=int, default=SIZES[-2], help=f"rows, of {', '.join(map(str, SIZES))} (1000000)")
    parser.add_argument("--dim", type=int, default=100, help="elements a vector (100)")
    parser.add_argument("--rounds", type=int, default=3, help="builds of each size by each builder (3)")
    parser.add_argument("--threads", type=int, default=2, help="of the builds (2)")
    parser.add_argument("--quick", action="store_true", help="one round up to 30,000 rows, into scale-part.json")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.most = 1, SIZES[1]
    chosen.sizes = [size for size in SIZES if size <= chosen.most]
    if len(chosen.sizes) < 2 or min(chosen.rounds, chosen.threads, chosen.dim) < 1:
        parser.error(f"ask for --most {SIZES[1]} or more, and for a round, a thread and an element or more")
    chosen.work = chosen.build / "scale"
    return chosen


if __name__ == "__main__":
    options()
