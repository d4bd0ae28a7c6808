"""The data of a page, to take along."""

from __future__ import annotations

import csv
import io
import json

from escapade.agent.phases import Phase
from escapade.experiment.summary import at_most, realised
from escapade.report.encoding import downloads
from escapade.report.material import Material

__all__ = ["bins_csv", "downloads_html", "summary_json"]


def summary_json(material: Material) -> str:
    """Return the summary; of a run that goes on, what can be said so far.

    Digests of the directory's files are left out: the journal in it tells the time, and
    the page of a run that is lived again is to be the same.
    """
    found = material.summary
    if found is None:
        most = material.knowledge.cost_max
        found = {
            **at_most(material.trace, most).summary(),
            "realised": realised(material.trace, most),
        }
        # a reward that nobody knows leaves no mean
        found = json.loads(json.dumps(found), parse_constant=lambda _: None)
    found = {key: value for key, value in found.items() if key != "files"}
    return json.dumps(found, indent=1, sort_keys=True)


def bins_csv(material: Material) -> str:
    """Return what the figures show, one line a bin of steps."""
    trace, bins = material.trace, material.bins
    columns = {
        "first_step": bins.first,
        "steps": bins.lengths,
        "reward": bins.total(trace.rewards),
        **{phase.label: bins.count(trace.phases == phase) for phase in Phase},
    }
    for channel in range(trace.budget.size):
        end = f"_{channel}" if channel else ""
        promise, reserved = trace.promise[:, channel], trace.reserved[:, channel]
        columns |= {
            f"cost{end}": bins.total(trace.costs[:, channel]),
            f"promise_least{end}": bins.lowest(promise),
            f"promise_most{end}": bins.highest(promise),
            f"reserved_most{end}": bins.highest(reserved),
            f"slack_least{end}": bins.lowest(promise - reserved),
            f"realised_most{end}": bins.highest(material.to_go[:, channel]),
        }
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(c.tolist() for c in columns.values()), strict=True))
    return file.getvalue()


def downloads_html(material: Material) -> str:
    """Return links that hold the data themselves."""
    return downloads(
        [
            ("summary.json", "application/json", summary_json(material), "The summary"),
            ("steps.csv", "text/csv", bins_csv(material), "The figures' numbers"),
            ("spec.toml", "text/plain", material.specification, "The specification"),
        ]
    )
