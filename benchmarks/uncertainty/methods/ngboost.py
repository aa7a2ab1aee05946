import time

from benchmarks.uncertainty.methods import MAX_ROUNDS, PATIENCE, Forecast, held_out
from sglb.distributions import Normal

NAME = "NGBoost"
PACKAGE = "ngboost"
NOTE = (
    f"`NGBRegressor` with its normal distribution and log score, learning rate .01; at most"
    f" {MAX_ROUNDS:,} rounds, stopped early, fitted again"
)
VARIANTS = ("ngboost",)


def forecast(train, test, seed, threads):
    from ngboost import NGBRegressor

    X, y = train
    learn, stop = held_out(len(y), seed)
    start = time.process_time()
    trial = NGBRegressor(n_estimators=MAX_ROUNDS, random_state=seed, verbose=False)
    trial.fit(X[learn], y[learn], X_val=X[stop], Y_val=y[stop], early_stopping_rounds=PATIENCE)
    rounds = MAX_ROUNDS if trial.best_val_loss_itr is None else trial.best_val_loss_itr + 1
    model = NGBRegressor(n_estimators=rounds, random_state=seed, verbose=False).fit(X, y)
    seconds = time.process_time() - start
    result = model.pred_dist(test).params
    return {"ngboost": Forecast.of(Normal(result["loc"], result["scale"]), seconds)}
