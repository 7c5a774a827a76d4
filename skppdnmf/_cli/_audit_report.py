"""The report on an audit."""

from __future__ import annotations

from typing import Any

from .._version import __version__
from ..plot._leakage import LeakageDisplay
from ._page import Page, new_figure
from ._summary import parameter_rows, plain

_COLUMNS = ("protection", "attack", "attacker", "victim", "target")


def audit_page(
    result: Any,
    source: str,
    parameters: dict[str, Any],
    image_shape: tuple[int, int] | None = None,
) -> str:
    """Return the HTML page on an audit.

    Parameters
    ----------
    result : AuditReport
        What `audit_report` returns.
    source : str
        What the page calls the data.
    parameters : dict
        The estimator's.
    image_shape : tuple of int or None, default=None
        Shape of a sample as an image.

    Returns
    -------
    str
        The page.
    """
    page = Page(f"What the agents learn: an audit of {source}")
    page.paragraph(f"skppdnmf {__version__}")
    page.text(str(result))
    worst = result.worst
    # Nobody's data are shown without need.
    if worst is not None and worst.truth is not None and worst.recovered > 0:
        page.heading("The greatest leak")
        page.paragraph(
            f"The figure shows data of agent {worst.victim!r}: guard it like these.",
            warning=True,
        )
        figure, ax = new_figure(7.0, 4.0)
        LeakageDisplay.from_leakage(worst, image_shape=image_shape, ax=ax)
        page.figure(figure, str(worst))
    records = [
        (
            *(record[name] for name in _COLUMNS),
            *(f"{record[name]:.4g}" for name in ("error", "guess_error", "recovered")),
        )
        for record in result.to_dict()
    ]
    page.table(
        records,
        header=[*_COLUMNS, "error", "error of guessing", "recovered"],
        folded="All attacks",
    )
    page.heading("Parameters")
    page.table(parameter_rows({k: plain(v) for k, v in parameters.items()}))
    return page.render()
