"""Results -> the Markdown that is printed or put into docs/ranking.md."""

BEGIN = "<!-- ranking: written by python -m benchmarks.ranking -->"
END = "<!-- end of ranking -->"
DEFAULTS = (
    "sglb query_squared",
    "lightgbm lambdarank",
    "lightgbm xendcg",
    "xgboost rank:ndcg",
    "catboost YetiRank",
)


def markdown(results):
    return ""
