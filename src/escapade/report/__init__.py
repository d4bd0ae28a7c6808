"""The page of a run, a comparison or a sweep: one file, which loads nothing.

``material``   what a page is made of, read from a run
``binning``    a long life in few numbers that hide no extreme
``verdict``    the outcome in words
``facts``      conditions, settings and versions, with numbers
``figures``    what Plotly draws
``replay``     stretches of the life on the map of its world
``downloads``  the data, inlined as links
``page``       the page of a run, put together
``comparison`` the page of a comparison
``sweep``      the page of a sweep
``paper``      the same figures as SVG and PDF, by Matplotlib
``scaffold``   the frame of every page: style, contents, figures, no request
"""

from escapade.report.comparison import build_comparison_page, write_comparison_page
from escapade.report.page import build_page, write_page
from escapade.report.paper import figure_names, write_figures
from escapade.report.sweep import build_sweep_page, write_sweep_page

__all__ = [
    "build_comparison_page",
    "build_page",
    "build_sweep_page",
    "figure_names",
    "write_comparison_page",
    "write_figures",
    "write_page",
    "write_sweep_page",
]
