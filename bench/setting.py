"""Facts that every comparison tells of itself: the machine, the commit, and how a set of rounds is summed up."""

import argparse
import os
import pathlib
import platform
import statistics
import subprocess
import sys


ROOT = pathlib.Path(__file__).resolve().parent.parent


def options_of(bench, *parts):
    """The options that comparisons share: folders, and one of the parts alone. Each adds its own."""
    parser = argparse.ArgumentParser(prog=f"./dev bench {bench}")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data", help="folder of the data sets")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results", help="folder of the record")
    if parts:
        parser.add_argument("--only", choices=parts, help="measure one part anew, keep the others")
    return parser


def output_of(bench, *words):
    """The output of a program that takes one thread. A failure ends the run."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(f"bench {bench}: this failed: {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def commit():
    def git(*arguments):
        return subprocess.run(["git", "-C", str(pathlib.Path(__file__).parent), *arguments], capture_output=True,
                              text=True)
    try:
        named = git("rev-parse", "HEAD")
    except OSError:
        return "unknown"
    if named.returncode != 0:
        return "unknown"
    # The records that an earlier benchmark left are no change of what is measured.
    changed = git("status", "--porcelain", "--", ":/", ":(exclude,top)bench/results").stdout
    return named.stdout.strip() + (" with changes" if changed else "")


def machine():
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    about = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in cpuinfo.splitlines())}
    generation = [f"{key.split()[-1]} {about[key]}" for key in ("cpu family", "model") if key in about]
    pages = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {"cpu": about.get("model name", platform.machine()), "generation": ", ".join(generation), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release().split("-")[0],
            "libc": " ".join(platform.libc_ver()),
            "transparent_huge_pages": pages.read_text().strip() if pages.exists() else "none",
            "load_average": os.getloadavg()[0]}


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def span(values, digits=2):
    return f"{values['median']:.{digits}f}  ({values['min']:.{digits}f} to {values['max']:.{digits}f})"


def fact(name, target, reached, more_is_better):
    met = reached >= target if more_is_better else reached <= target
    return {"name": name, "target": target, "bound": "at least" if more_is_better else "at most", "reached": reached,
            "met": met}


def verdicts(facts):
    return [f"{'reached' if t['met'] else 'MISSED':8} {t['name']:58} target {t['bound']:8} {t['target']:<5g} "
            f"reached {t['reached']:.3f}" for t in facts]


def between(text, name, tables):
    """text with what stands between the marks of that name replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        sys.exit(f"bench: the file has to hold the line '{begin}' and after it '{end}', each once")
    return text[:text.index(begin) + len(begin)] + "\n" + tables + "\n" + text[text.index(end):]
