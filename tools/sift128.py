"""sift128.py OUT DEB_DIRECTORY: SIFT descriptors of photographs, from the unpacked packages that ship them.

Each row is one descriptor of 128 bytes (Lowe 2004) as OpenCV computes it from a grey image of at most 2,560 pixels a
side, the strongest 40,000 points a photograph, found at half of OpenCV's usual contrast. Equal descriptors are one row.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from vectors import distinct, write_set

LONGEST_SIDE, POINTS, CONTRAST = 2560, 40000, 0.02

# The other pictures of these packages are drawn, not photographed, and SIFT finds few points in them.
PHOTOGRAPHS = {
    "usr/share/backgrounds": (
        "Bridge_by_Sander_Klootwijk aitzgorri_by_Aitzol_Berasategi Dragonfly_by_Bolly free_by_Peter_Nerlich "
        "friends_by_Aitzol_Berasategi greentock_by_Peter_Nerlich life_by_Aitzol_Berasategi Picture_0B_by_freespace "
        "picosdeeuropa_by_Aitzol_Berasategi Picture_1A_by_freespace seeding_by_Clements_Engelhardt "
        "sunset_by_Aitzol_Berasategi Wine_by_Jakkub_Mede"
    ),
    "usr/share/backgrounds/mate/nature": (
        "Aqua Blinds Dune FreshFlower Garden GreenMeadow LadyBird RainDrops Storm TwoWings Wood YellowFlower"
    ),
    "usr/share/palapeli/collection": (
        "castle-maintenon cincinnati-bridge citrus-fruits european-honey-bee panther-chameleon-female"
    ),
    "usr/share/wallpapers": (
        "BytheWater ColdRipple ColorfulCups DarkestHour EveningGlow FallenLeaf Grey Kite OneStandsOut Path summer_1am"
    ),
}

Bytes = npt.NDArray[np.uint8]


def photographs(packages: Path) -> Iterator[Path]:
    for folder, names in PHOTOGRAPHS.items():
        for name in names.split():
            found = packages / folder / f"{name}.jpg"
            yield found if found.is_file() else packages / folder / name / "contents/images/2560x1600.jpg"


def as_bytes(descriptors: npt.NDArray[np.float32]) -> Bytes:
    """OpenCV gives whole numbers as float32."""
    rows = descriptors.astype(np.uint8)
    if not np.array_equal(rows, descriptors):
        raise ValueError("a descriptor holds what is not a whole number from 0 to 255")
    return rows


def descriptors(path: Path) -> Bytes:
    import cv2

    image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    if image is None:
        raise ValueError(f"{path} cannot be read as an image")
    shrink = LONGEST_SIDE / max(image.shape)
    if shrink < 1:
        image = cv2.resize(image, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
    found = cv2.SIFT_create(nfeatures=POINTS, contrastThreshold=CONTRAST).detectAndCompute(image, None)[1]
    rows = np.empty((0, 128), np.uint8) if found is None else as_bytes(found)
    print(f"sift128: {path.parents[2].name if path.stem[0].isdigit() else path.stem}: {len(rows)}", flush=True)
    return rows


def main(out: Path, packages: Path) -> None:
    rows = np.concatenate([descriptors(path) for path in photographs(packages)])
    write_set(out, rows[distinct(rows)])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: sift128.py OUT DEB_DIRECTORY")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
