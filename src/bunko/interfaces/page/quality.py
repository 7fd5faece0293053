"""The page about search quality: the reports of evaluations and sweeps as pictures."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bunko.errors import AccessDenied
from bunko.evaluation.judge import JudgeAccess
from bunko.evaluation.report_store import FOLDER, ReportStore, StoredReport
from bunko.interfaces.api.routes.quality import report_store
from bunko.interfaces.page.answering import PageView
from bunko.interfaces.page.library_tools import time_values
from bunko.interfaces.page.quality_charts import comparisons, curves, facts, scores, worst_queries
from bunko.interfaces.page.rendering import render
from bunko.interfaces.text import single_line

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.rights.access import LibraryAccess

_VERDICTS = {"better": "better", "not proven": "not_proven", "same": "same"}


class QualityPage(PageView):
    """Shows reports."""

    async def answer(self, request: Request) -> Response:
        """Return the page with all reports, and the one that the address names, else the newest."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        store = None
        with suppress(AccessDenied):
            store = report_store(library)
        reports, local_time = store.all() if store else [], library.readable.local_time()
        report_id = request.query_params.get("report", "") or (reports[0].id if reports else "")
        values: dict[str, Any] = {
            "reports": [_listed(report, local_time) for report in reports],
            "chosen": report_id,
            "report": _report_values(store, report_id) if store and report_id else None,
            "can_see": store is not None,
            "folder": single_line(str(store.folder)) if store and library.caller.rights.writes_all else f"…/{FOLDER}",
            "can_judge": not self.registry.is_read_only and bool(JudgeAccess(library).tools()),
        }
        return render(request, "quality.html", values)


def _listed(report: StoredReport, local_time: datetime) -> dict[str, Any]:
    return {
        "id": report.id,
        "kind": report.kind,
        "name": single_line(report.name),
        "queries": report.queries,
        "created": time_values(report.created_at, local_time),
        "measure": single_line(report.measure),
        "score": report.score,
    }


def _report_values(store: ReportStore, report_id: str) -> dict[str, Any]:
    stored, content = store.load(report_id)
    values: dict[str, Any] = {"kind": stored.kind, "name": single_line(stored.name), "queries": stored.queries}
    values["facts"] = list(facts(content.get("settings"))) if stored.kind == "evaluation" else []
    if stored.kind == "evaluation":
        rows = scores(content)
        return values | {
            "scores": rows,
            "mode": single_line(str(content.get("mode", ""))),
            "modes": list(dict.fromkeys((score.mode, score.colour) for score in rows)),
            "comparisons": comparisons(content),
            "measure": stored.measure,
            "worst": worst_queries(content, stored.measure),
        }
    best = content.get("best")
    return values | {
        "curves": curves(content),
        "measure": single_line(stored.measure),
        "verdict": _VERDICTS.get(str(content.get("verdict")), ""),
        "best": list(facts(best.get("settings"))) if isinstance(best, dict) else [],
        "toml": str(content.get("toml") or ""),
        "measured": content.get("measured"),
        "total": content.get("total"),
    }
