"""Print and draw the measurements of the theorems for `sglb paper theory`."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sglb.experiments.page import PageReport, bar, check_page, console, write_section
from sglb.experiments.theory import bound_figure, law_figure, law_tables, rate_figure, rate_tables
from sglb.experiments.theory.concentration import concentration
from sglb.experiments.theory.convergence import convergence
from sglb.experiments.theory.generalisation import generalisation
from sglb.experiments.theory.modes import modes
from sglb.experiments.theory.momentum import momentum
from sglb.experiments.theory.preconditioner import preconditioner
from sglb.experiments.theory.problem import StudySize
from sglb.experiments.theory.regularisation import regularisation
from sglb.experiments.theory.spectral_gap import drawn, greedy, well_gaps
from sglb.experiments.theory.weak_convergence import weak_convergence

# Share of the full chains that --quick runs.
QUICK = 0.1
STUDIES: tuple[Callable[[StudySize], Any], ...] = (
    weak_convergence,
    concentration,
    preconditioner,
    modes,
    generalisation,
    regularisation,
    drawn,
    greedy,
    well_gaps,
    convergence,
    momentum,
)


def run(folder: Path, *, quick: bool = False, seed: int = 0, write: Path | None = None) -> None:
    """Run all measurements, print the tables, save the figures."""
    if write is not None:
        check_page(write, "theory")
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    size = StudySize(QUICK if quick else 1.0, seed)
    out = console()
    results = []
    with bar("theorems", len(STUDIES)) as progress:
        for study in STUDIES:
            results.append(study(size))
            progress(len(results))
    weak, concentrated, structures, visited, new_rows, bias = results[:6]
    slow, slow_greedy, wells, near, moved = results[6:]
    figures = [folder / f"theory{name}.png" for name in ("", "_new_rows", "_rates")]
    law_figure.draw(figures[0], weak, concentrated, structures, visited)
    bound_figure.draw(figures[1], new_rows, bias)
    rate_figure.draw(figures[2], slow, wells, near, moved)
    report = PageReport()
    law_tables.report_weak(report, weak)
    law_tables.report_concentration(report, concentrated)
    law_tables.report_preconditioner(report, structures)
    law_tables.report_modes(report, visited)
    rate_tables.report_generalisation(report, new_rows)
    rate_tables.report_regularisation(report, bias)
    rate_tables.report_autocorrelation(report, slow, slow_greedy)
    rate_tables.report_wells(report, wells)
    rate_tables.report_convergence(report, near)
    rate_tables.report_momentum(report, moved)
    flag = " (--quick)" if quick else ""
    report.text(f"All of this took {time.perf_counter() - started:.0f} s{flag}, seed {seed}.")
    report.print(out)
    out.print(f"\nThe figures are {', '.join(map(str, figures))}.")
    if write is not None:
        write_section(write, "theory", report.markdown())
        out.print(f"The tables are in {write}.")
