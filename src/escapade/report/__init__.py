"""The page that shows a run: one file, which loads nothing.

``material``   what a page is made of, read from a run
``binning``    a long life in few numbers that hide no extreme
``verdict``    the outcome in words
``facts``      conditions, settings and versions, with numbers
``figures``    what Plotly draws
``replay``     stretches of the life on the map of its world
``downloads``  the data, inlined as links
``page``       the page of a run, put together
``scaffold``   the frame of every page: style, contents, figures, no request
"""

from escapade.report.page import build_page, write_page

__all__ = ["build_page", "write_page"]
