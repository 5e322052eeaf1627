"""From ratings to recommended films: recall by vectors, then ranking by a wide & deep model, in one call.

MovieLens-100k: 943 people, 1,682 films, 100,000 ratings, a fifth of them held out.

1. Matrix factorisation (implicit's ALS) of the training ratings gives every person and every film a vector.
2. An index over the films' vectors recalls, for a person's vector, the films of largest inner product.
3. A ranker scores the recalled films by all that is known: the recall score, both vectors, the person, the film and
   its ratings.
4. A recommender does both in one call. The example compares the call, on the held-out ratings, with recall alone.
5. A filter holds recall to films of one genre that the person has not rated.

The ranker must learn from recalls of ratings that the vectors have not seen, as the ranker will meet when serving.
Ratings that ALS was fitted to are recalled far too well. So the training ratings are cut into folds, and each fold is recalled
by vectors fitted to the others.

The vectors are fitted to all ratings: the films someone watched say the most about what to recall. The ranker is left
to tell which of them the person will like. Vectors fitted to the likes alone know of both. With 32 factors their
recall lists have an NDCG@10 of 0.383 by themselves, no less than recall + rank has here. The ranker improves on the
recall of vectors fitted to all ratings.

    ./dev demo               makes ready what this needs, and runs it by examples/films.sh
    films.py --save FOLDER   also leaves index, model, item table and a Parquet table of the people in FOLDER, for
                             examples/recommend_table.py
"""

import argparse
import pathlib
import sys
import time

import numpy as np
import pandas as pd
import scipy.sparse
from implicit.als import AlternatingLeastSquares

import shortlist

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "data" / "movielens100k"
SPEC = HERE / "specs" / "films.json"

LIKED = 4  # a rating of 4 or 5 of 5
FOLDS = 5
CANDIDATES = 100  # recalled for each person, and ranked
TOP = 10
OF_GENRE = 5  # films of one genre, by recall with a filter


class Step:
    """Prints what is done, and how long it took."""

    def __init__(self, what):
        print(f"{what:<72}", end="", flush=True)
        self.begin = time.perf_counter()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        print("" if any(failure) else f"{time.perf_counter() - self.begin:6.1f} s")


class Vectors:
    """A vector for every person and film that is rated, and the index of the films'.

    like: other vectors. ALS finds its vectors up to a rotation; these are turned to lie as near to the others as they
    can, so that a model may learn from several fits.
    """

    FACTORS, ALPHA, REGULARIZATION, ITERATIONS = 24, 2.0, 20.0, 15

    def __init__(self, ratings, like=None):
        ones = np.ones(len(ratings), np.float32)
        matrix = scipy.sparse.csr_matrix((ones, (ratings.user_id, ratings.movie_id)), shape=(USERS, FILMS))
        model = AlternatingLeastSquares(
            factors=self.FACTORS, alpha=self.ALPHA, regularization=self.REGULARIZATION,
            iterations=self.ITERATIONS, random_state=1, num_threads=1,
        )
        model.fit(matrix, show_progress=False)
        self.users, self.films = model.user_factors, model.item_factors
        if like is not None:
            left, _, right = np.linalg.svd(self.films.T @ like.films)
            self.users, self.films = self.users @ left @ right, self.films @ left @ right
        self.index = shortlist.Index(dim=self.FACTORS, metric="ip", codes="i8", refine="f32")
        # With one thread the same graph is built, and the same films are recalled, each time this is run.
        self.index.add(self.films[films.movie_id], ids=films.movie_id, threads=1)


class Known:
    """Facts about people and films in a set of ratings: the columns that the ranker's features are made of."""

    def __init__(self, ratings):
        liked = ratings[ratings.rating >= LIKED]
        self.seen = ratings.groupby("user_id").movie_id.apply(np.array).to_dict()
        self.users = users.assign(**self._numbers("user", ratings, users.user_id))
        self.films = films.assign(
            **self._numbers("film", ratings, films.movie_id),
            film_likes=liked.groupby("movie_id").size().reindex(films.movie_id, fill_value=0).to_numpy(),
        )
        # The share of each genre among the films that a person liked.
        counts = np.zeros((USERS, GENRES.shape[1]), np.float32)
        np.add.at(counts, liked.user_id, GENRES[liked.movie_id])
        self.genres = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)

    @staticmethod
    def _numbers(what, ratings, ids):
        of = ratings.groupby("user_id" if what == "user" else "movie_id").rating
        count = of.size().reindex(ids, fill_value=0).to_numpy()
        # Few ratings say little: five of the overall mean are added to each.
        total = of.sum().reindex(ids, fill_value=0).to_numpy() + 5 * ratings.rating.mean()
        return {f"{what}_ratings": count, f"{what}_mean": total / (count + 5)}

    def of_people(self, who):
        """The columns of the side of users, a row for each of these ids."""
        rows = self.users.set_index("user_id").loc[who].reset_index()
        return {**rows.to_dict("series"), "user_genres": self.genres[who]}

    def exclude(self, who):
        return [self.seen.get(user, ()) for user in who]


def likes(ratings):
    """The films that each person liked."""
    return ratings[ratings.rating >= LIKED].groupby("user_id").movie_id.apply(set).to_dict()


def training_rows(ratings, full):
    """The films recalled for each fold by vectors of the others, and whether they were liked."""
    fold = np.random.default_rng(1).permutation(len(ratings)) % FOLDS
    blocks = []
    for held in range(FOLDS):
        rest = ratings[fold != held]
        vectors, known = Vectors(rest, like=full), Known(rest)
        liked = likes(ratings[fold == held])
        who = np.array(sorted(liked))
        recalled = shortlist.Recommender(vectors.index).recommend(
            vectors.users[who], n=CANDIDATES, candidates=CANDIDATES, exclude=known.exclude(who)
        )
        user, film = np.repeat(who, CANDIDATES), recalled.ids.ravel().astype(np.int64)
        item = known.films.set_index("movie_id").loc[film].reset_index()
        blocks.append({
            **known.of_people(user), **item.to_dict("series"),
            "recall": recalled.scores.ravel(),
            "user_vector": vectors.users[user], "film_vector": vectors.films[film],
            "liked": np.array([f in liked[u] for u, f in zip(user, film)], np.int32),
        })
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def measure(lists, liked):
    """Means of NDCG and recall of the lists, at their length, over people who liked any of the held-out films."""
    gain = 1 / np.log2(np.arange(2, TOP + 2))
    ndcg, recall = [], []
    for found, right in zip(lists, liked):
        hit = np.isin(found, list(right))
        ndcg.append(gain[hit].sum() / gain[: len(right)].sum())
        recall.append(hit.sum() / len(right))
    return np.mean(ndcg), np.mean(recall)


def show(user, ratings, found, scores, held_out):
    """Prints the films that a person liked, and the recommended ones."""
    about = films.set_index("movie_id")
    who = users.set_index("user_id").loc[user]
    print(f"\nUser {user}, {who.age}, {who.gender}, {who.occupation}, liked among others:")
    best = ratings[ratings.user_id == user].sort_values(["rating", "timestamp"], ascending=False)
    for film in best.movie_id[:5]:
        print(f"    {about.title[film]} ({about.year[film]:.0f})")
    print("  and is recommended (* liked, say the ratings held out):")
    for film, score in zip(found, scores):
        mark = "*" if film in held_out else " "
        print(f"  {mark} {score:.3f}  {about.title[film] + f' ({about.year[film]:.0f})':48.48}  "
              f"{about.genres[film].replace('|', ', ')}")


def show_genre(user, genre, vectors, known):
    """Prints the films of one genre, not seen yet, that are recalled for a person. The search looks at no others."""
    of_genre = films.movie_id[GENRES[films.movie_id, NAMES.index(genre)] > 0].to_numpy()
    seen = known.seen.get(user, np.empty(0, np.int64))
    allowed = shortlist.Filter(vectors.index, of_genre, exclude=seen)
    found, _ = vectors.index.search(vectors.users[user], OF_GENRE, filter=allowed)
    if not set(found.ravel()) <= set(of_genre) - set(seen):
        sys.exit(f"films: a filter of {genre} let other films pass")
    about = films.set_index("movie_id")
    print(f"  and of {genre}, with a filter that allows {len(allowed)} of {len(films)} films:")
    for film in found.ravel():
        print(f"            {about.title[film]} ({about.year[film]:.0f})")


def save(folder, vectors, known, ranker):
    """Writes the four files of a job that recommends films to everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    vectors.index.save(folder / "films.sl")
    ranker.save(folder / "films.slr")
    shortlist.Items(known.films, id="movie_id").save(folder / "films.sli")
    who = users.user_id.to_numpy()
    people = {**known.of_people(who), "vector": vectors.users[who], "seen": map(list, known.exclude(who))}
    lists = ("user_genres", "vector", "seen")
    pd.DataFrame({**people, **{name: list(people[name]) for name in lists}}).to_parquet(folder / "people.parquet")


def main():
    parser = argparse.ArgumentParser(description="Recommends films to people of MovieLens-100k.")
    parser.add_argument("--save", type=pathlib.Path, metavar="FOLDER", help="leave index, model and tables there")
    given = parser.parse_args()
    with Step("Vectors of people and films, and an index of the films'"):
        vectors, known = Vectors(train), Known(train)
    with Step(f"The same {FOLDS} times without a fold, which is recalled, {CANDIDATES} films a person"):
        rows = training_rows(train, vectors)
    liked = rows["liked"]
    with Step(f"The ranker, trained on {len(liked):,} recalled films, {liked.mean():.1%} of them liked"):
        ranker = shortlist.Ranker.train(SPEC, rows, threads=1)
    if given.save:
        save(given.save, vectors, known, ranker)

    held_out = likes(test)
    who = np.array(sorted(held_out))
    request = {"n": TOP, "candidates": CANDIDATES, "exclude": known.exclude(who)}
    with Step(f"Ten films for each of {len(who)} people, by recall alone and with the ranker"):
        recall = shortlist.Recommender(vectors.index).recommend(vectors.users[who], **request)
        recommender = shortlist.Recommender(vectors.index, ranker, shortlist.Items(known.films, id="movie_id"))
        ranked = recommender.recommend(vectors.users[who], known.of_people(who), **request)

    print(f"\nHeld-out ratings{'NDCG@10':>16}{'recall@10':>12}")
    figures = {}
    for name, lists in (("recall alone", recall.ids), ("recall + rank", ranked.ids)):
        figures[name] = measure(lists, [held_out[user] for user in who])
        print("{:<16}{:>16.4f}{:>12.4f}".format(name, *figures[name]))

    # Three people with a taste: those whose likes are most of one genre, among those who liked many films.
    many = train[train.rating >= LIKED].groupby("user_id").size()
    many = np.intersect1d(many[many >= 30].index, who)
    for genre in ("Sci-Fi", "Romance", "Children's"):
        user = many[np.argmax(known.genres[many, NAMES.index(genre)])]
        at = np.searchsorted(who, user)
        show(user, train, ranked.ids[at], ranked.scores[at], held_out[user])
        show_genre(user, genre, vectors, known)

    print("\nData: MovieLens-100k, F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and "
          "Context.\nACM Transactions on Interactive Intelligent Systems 5, 4: 19. https://doi.org/10.1145/2827872")
    better = all(np.greater(figures["recall + rank"], figures["recall alone"]))
    return 0 if better else "films: ranking did not improve on recall alone"


train, test, users, films = (pd.read_csv(DATA / f"{name}.csv") for name in ("train", "test", "users", "items"))
USERS, FILMS = users.user_id.max() + 1, films.movie_id.max() + 1
_genres = films.genres.str.get_dummies()
NAMES = list(_genres)
GENRES = np.zeros((FILMS, len(NAMES)), np.float32)
GENRES[films.movie_id] = _genres

if __name__ == "__main__":
    sys.exit(main())
