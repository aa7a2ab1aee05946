from benchmarks.uncertainty.methods import sglb

NAME = "sglb, 5 chains"
PACKAGE = "sglb"
NOTE = "`SGLBRegressor(uncertainty=True, n_chains=5)`, a fit by itself"
VARIANTS = ("sglb, 5 chains", "sglb, 5 chains, normal")


def forecast(train, test, seed, threads):
    laws = sglb.forecast(train, test, seed, threads, n_chains=5)
    return dict(zip(VARIANTS, laws.values(), strict=True))
