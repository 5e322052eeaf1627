"""The names of the runbooks, and the ones that a set is put through."""

STREAMS = ("expiration", "replace-only", "replace-delete", "sliding-window")
CHURN = ("generations", "turnover")  # in which so many vectors live all the time
CHURN_OF = {"glove100": "generations", "gloss384": "turnover"}  # of a set that is not named: generations
