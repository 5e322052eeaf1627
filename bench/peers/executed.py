"""Counts the instructions that a library executes while it searches, and judges them."""

import ctypes
import json
import os
import subprocess
import sysconfig

COUNTED = 300_000  # instructions of a library that are looked at
SET_PTRACER, ANY = 0x59616d61, ctypes.c_ulong(-1)  # of prctl: this process may be traced
WIDE_SHARE = 0.1  # of a library's vector instructions: the wheel scann 1.4.2, whose kernels have 128 bits, has 0.02


def counted(said, code):
    """Returns the counts of the library's instructions, or the reason for having none."""
    if not said:
        return {"why": f"counting ended with exit code {code}"}
    counts = json.loads(said)
    if counts.get("own", 1) == 0:
        return {"why": f"none of {counts['all']} instructions were of the library's own files"}
    return counts


def stepped(program, call, rows):
    """Counts the instructions that calls for the rows execute, by a program that steps this process meanwhile."""
    ctypes.CDLL(None).prctl(SET_PTRACER, ANY)
    own = os.path.realpath(sysconfig.get_path("platlib"))  # as the process's mappings name the files
    command = [program, str(os.getpid()), str(COUNTED), own]
    counting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while counting.poll() is None:
        for row in rows:
            call(row)
            if counting.poll() is not None:
                break
    return counted(counting.stdout.read(), counting.returncode)


def is_narrow(counts):
    """Tells whether next to no vector instruction that was executed is wider than 128 bits."""
    wide = counts["bits512"] + counts["bits256"]
    return wide < WIDE_SHARE * (wide + counts["bits128"])


def per_thousand(counts):
    """{kind: how many of a thousand of the library's own instructions}."""
    return {kind: 1000 * counts[kind] / max(1, counts["own"])
            for kind in ("bits512", "bits256", "bits128", "byte_dot", "tile", "prefetch")}
