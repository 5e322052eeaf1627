"""Damage in an index file stays damage, whichever way Python saves what it has opened."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import shortlist

FLIPS = 40


def is_sound(path: Path) -> bool:
    try:
        with shortlist.open(path) as ix:
            ix.check(sample=0)
    except shortlist.Error as error:
        assert error.status in ("SL_ECORRUPT", "SL_EFORMAT", "SL_EVERSION", "SL_EUNSUPPORTED"), error
        return False
    return True


@pytest.mark.parametrize("room", [0, 500])
@pytest.mark.parametrize("layout", ["arrays", "records"])
def test_a_save_hides_no_damage(room: int, layout: str, tmp_path: Path, x: Any) -> None:
    small = shortlist.Index(dim=32, metric="l2", codes="i8")
    small.add(x[:200])
    whole, bad, other = tmp_path / "whole.sl", tmp_path / "bad.sl", tmp_path / "other.sl"
    small.save(whole, room=room, layout=layout)
    data = whole.read_bytes()
    source = random.Random(len(data))
    for i in range(FLIPS):
        at = source.randrange(len(data))
        changed = bytearray(data)
        changed[at] ^= 1 << source.randrange(8)
        bad.write_bytes(changed)
        # The superblocks are two, each with a checksum and a page of its own.
        if is_sound(bad):
            assert room and len(data) - 12352 <= at < len(data) - 4160, at
            continue
        target = (other, bad)[i % 2]
        other.unlink(missing_ok=True)
        try:
            with shortlist.open(bad, place=("dram", "map")[i // 2 % 2]) as ix:
                ix.save(target, room=room if i % 3 else 0)
        except (shortlist.Error, ValueError, OSError):
            assert bad.read_bytes() == bytes(changed), at
            assert not other.exists()
            continue
        assert not is_sound(target), at
