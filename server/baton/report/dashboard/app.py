"""The dashboard as a web application: addresses, and what each of them shows."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from baton.contract.errors import BatonError, InvalidInput, NotFound
from baton.engine.house import House
from baton.report.dashboard import (
    agent_pages,
    consult_pages,
    pool_pages,
    review_pages,
    run_pages,
    workflow_pages,
)
from baton.report.dashboard.form import TOKEN, read_form
from baton.report.dashboard.guard import EDITING, ENTER, Guard
from baton.report.dashboard.keys import Keys
from baton.report.dashboard.live import (
    consultations_mark,
    news,
    pools_mark,
    reviews_mark,
    run_mark,
    runs_mark,
    workflows_mark,
)
from baton.report.dashboard.query import Query
from baton.report.templating import prepare, render, source
from baton.report.timelines import Timelines

log = logging.getLogger(__name__)

MAX_STREAMS = 40

Page = Callable[[House, Query], tuple[str, dict[str, Any]]]
"""Reads what one page shows: the template, and its context."""

PAGES: dict[str, Page] = {
    "/": run_pages.runs,
    "/runs/{run_id}": run_pages.run,
    "/runs/{run_id}/usage": run_pages.usage,
    "/runs/{run_id}/events": run_pages.events,
    "/runs/{run_id}/texts/{artifact}": run_pages.text,
    "/runs/{run_id}/tasks/{task_id}": run_pages.task,
    "/runs/{run_id}/tasks/{task_id}/diff": run_pages.diff,
    "/pools": pool_pages.pools,
    "/pools/{pool_id}": pool_pages.pool,
    "/pools/{pool_id}/jobs/{job_id:path}": pool_pages.job,
    "/consultations": consult_pages.consultations,
    "/consultations/{consultation_id}": consult_pages.consultation,
    "/reviews": review_pages.reviews,
    "/reviews/{review_id}": review_pages.review,
    "/workflows": workflow_pages.workflows,
    "/workflows/{workflow_id}": workflow_pages.workflow,
}


def dashboard(
    house: House, keys: Keys, port: int, stopping: Callable[[], bool] = lambda: False, *, edit: bool = False
) -> ASGIApp:
    """The application for one house, guarded. `stopping` ends what would go on for ever.

    With `edit` there is a page of the agents that may be asked, whose forms change the person's policy.
    """
    prepare()
    remembering = {"/runs/{run_id}": partial(run_pages.run, timelines=Timelines())}
    routes = [Route(path, _shows(house, page)) for path, page in (PAGES | remembering).items()]
    routes += [
        Route("/runs/{run_id}/report.html", _report(house)),
        Route("/live", _live(house, stopping)),
        Route(ENTER, _enter(keys)),
        Route("/static/{name}", _static),
    ]
    if edit:
        routes += [
            Route(EDITING, _shows(house, partial(agent_pages.agents, form_token=keys.form))),
            Route(f"{EDITING}/{{agent}}", _saves(house, keys), methods=["POST"]),
        ]
    handlers: dict[Any, Any] = {
        HTTPException: _http_error,
        BatonError: _baton_error,
        ValidationError: _damaged,
    }
    pages = Starlette(routes=routes, exception_handlers=handlers)
    pages.state.edit = edit
    return Guard(pages, keys, port, edit=edit)


def _answered(show: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """What nobody expected is a page too, and no traceback in the terminal."""

    async def answer(request: Request) -> Response:
        try:
            return await show(request)
        except (HTTPException, BatonError, ValidationError):
            raise
        except Exception as error:
            log.debug("%s failed", request.url.path, exc_info=True)
            message = (
                f"A fault of Baton's own, or a record that cannot be read: {type(error).__name__}: {error}"
            )
            return _page(request, "dashboard/message.html", 500, title="Not readable", message=message[:500])

    return answer


def _shows(house: House, page: Page) -> Callable[[Request], Any]:
    @_answered
    async def show(request: Request) -> Response:
        query = Query(request)
        template, context = await run_in_threadpool(page, house, query)
        return await run_in_threadpool(_page, request, template, **context)

    return show


def _saves(house: House, keys: Keys) -> Callable[[Request], Any]:
    @_answered
    async def save(request: Request) -> Response:
        form = await read_form(request)
        if not keys.knows_form(form.pop(TOKEN, None)):
            raise HTTPException(403, "This form is none of this dashboard's pages; open the page again.")
        name = request.path_params["agent"]
        status, context = await run_in_threadpool(agent_pages.save, house, name, form, keys.form)
        if status == 303:
            # So that to load the page again sends nothing again.
            return RedirectResponse(f"{EDITING}?saved={quote(name)}", status)
        return await run_in_threadpool(_page, request, agent_pages.TEMPLATE, status, **context)

    return save


def _report(house: House) -> Callable[[Request], Any]:
    @_answered
    async def show(request: Request) -> Response:
        run_id = request.path_params["run_id"]
        page = await run_in_threadpool(run_pages.whole_report, house, run_id)
        name = f'attachment; filename="baton-{run_id}.html"'
        return HTMLResponse(page, headers={"Content-Disposition": name})

    return show


def _live(house: House, stopping: Callable[[], bool]) -> Callable[[Request], Any]:
    streams: set[object] = set()

    async def show(request: Request) -> Response:
        topic, _, subject = request.query_params.get("of", "").partition("/")
        marks = {
            "runs": lambda: runs_mark(house),
            "run": lambda: run_mark(house, subject),
            "pools": lambda: pools_mark(house),
            "pool": lambda: pools_mark(house, subject),
            "consultations": lambda: consultations_mark(house),
            "consultation": lambda: consultations_mark(house, subject),
            "reviews": lambda: reviews_mark(house),
            "review": lambda: reviews_mark(house, subject),
            "workflows": lambda: workflows_mark(house),
            "workflow": lambda: workflows_mark(house, subject),
        }
        if topic not in marks:
            raise NotFound(f"there is no news of {topic!r}; there is of {', '.join(marks)}")
        if len(streams) >= MAX_STREAMS:
            raise HTTPException(503, f"{MAX_STREAMS} pages are open already; close some")

        async def stream() -> Any:
            mine = object()
            streams.add(mine)
            try:
                async for line in news(house, marks[topic], stopping):
                    yield line
            except Exception:
                # The browser asks again by itself, and the page says meanwhile that nobody answers.
                log.debug("the news of %r ended", topic, exc_info=True)
            finally:
                streams.discard(mine)

        return StreamingResponse(stream(), media_type="text/event-stream")

    return show


def _enter(keys: Keys) -> Callable[[Request], Any]:
    async def show(request: Request) -> Response:
        # Who only asks whether there is something, as programs that preview links do, uses nothing up.
        if request.method == "HEAD":
            return Response(status_code=204)
        if not keys.enter(request.query_params.get("token", "")):
            message = "This link has been used, or is none. `baton dashboard` prints the next one."
            return _page(request, "dashboard/message.html", 401, title="Not this link", message=message)
        # A page and no redirect: so the browser asks for the next page by itself, and sends the cookie that
        # it sends to nobody else's request, wherever the link stood.
        answer = _page(request, "dashboard/enter.html")
        answer.set_cookie(keys.cookie, keys.session, httponly=True, samesite="strict", path="/")
        return answer

    return show


async def _static(request: Request) -> Response:
    kinds = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
    name = request.path_params["name"]
    if name not in kinds:
        raise NotFound(f"there is no {name!r} here")
    return Response(source(name), media_type=kinds[name])


def _page(request: Request, template: str, code: int = 200, /, **context: Any) -> HTMLResponse:
    always = {
        "nonce": request.state.nonce,
        "path": request.url.path,
        "live": None,
        "edit": request.app.state.edit,
    }
    text = render(template, **(always | context))
    # What is no Unicode has been made visible; this is for what no template shows.
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), code)


async def _baton_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, BatonError)
    status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, InvalidInput) else 503
    return _page(request, "dashboard/message.html", status, title="Not here", message=error.message)


async def _damaged(request: Request, error: Exception) -> Response:
    assert isinstance(error, ValidationError)
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = (
        f"The record of this cannot be read by this version of Baton: {error.title} {where}: {first['msg']}"
    )
    return _page(request, "dashboard/message.html", 500, title="Not readable", message=message)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = "There is no such page." if error.status_code == 404 else str(error.detail)
    return _page(request, "dashboard/message.html", error.status_code, title="Not here", message=words)
