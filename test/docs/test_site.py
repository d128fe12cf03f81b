"""The site that `make docs` builds, as a reader meets it in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from threading import Thread
from typing import Any

import pytest
from browser import Tab, needs_axe, needs_browser
from paths import ROOT

api = import_module("docs.api")
SITE = ROOT / "out" / "site"
pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="no out/site: run make docs"
)
WIDE, PHONE = (1280, 800), (390, 844)
PAGES = (
    "",
    "tutorials/first_flight/",
    "reference/interface/",
    "reference/api/crazyflow_ros.sim/",
    "code/examples/01_force.py/",
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from benchmark.chromium import open_chromium

    with open_chromium() as opened:
        yield opened


def newest() -> str:
    """The folder of the version to which the site's root leads."""
    return (SITE / "index.html").read_text().partition("url=")[2].partition('"')[0]


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the newest version."""
    handler = partial(Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/{newest()}"
        server.shutdown()


@pytest.fixture
def tab(browser: Any, site: str) -> Iterator[Tab]:
    tab = Tab(browser, site, WIDE, color_scheme="light")
    yield tab
    assert tab.errors == []
    tab.close()


def test_the_site_has_the_docstrings_of_all_public_names() -> None:
    pages = "".join(
        page.read_text() for page in (SITE / newest() / "reference" / "api").rglob("*.html")
    )
    shown = set(re.findall(r'id="([\w.]+)"', pages))
    for room in api.ROOMS:
        for name in api.public_names(room):
            if (found := api.definition(room, name)) is not None:
                assert f"{found.module}.{getattr(found.node, 'name', name)}" in shown


@needs_browser
def test_the_front_page_shows_drones_and_leads_to_the_first_flight(tab: Tab, site: str) -> None:
    picture = tab.page.locator("article img").first
    assert picture.evaluate("picture => picture.decode().then(() => picture.naturalWidth)") > 400
    lines = tab.page.locator("article pre").first.inner_text().strip().splitlines()
    assert len([line for line in lines if not line.startswith("#")]) == 3
    tab.page.locator("article").get_by_role("link", name="first flight").click()
    tab.page.wait_for_url(f"{site}tutorials/first_flight/")


@needs_browser
def test_the_search_finds_a_page(tab: Tab) -> None:
    tab.page.locator("input[name=query]").click()
    tab.page.locator("input[name=query]").fill("dryden turbulence")
    result = tab.page.locator(".md-search-result__link").first
    result.wait_for()
    result.click()
    tab.page.locator("article").get_by_text("Dryden").first.wait_for()


@needs_browser
def test_a_reader_chooses_dark_colors_and_a_version(tab: Tab) -> None:
    body = tab.page.locator("body")
    assert body.get_attribute("data-md-color-scheme") == "default"
    tab.page.locator("label[title='Dark mode']").click()
    assert body.get_attribute("data-md-color-scheme") == "slate"
    tab.page.locator(".md-version__current").wait_for()


@needs_browser
def test_dark_browsers_get_dark_colors(browser: Any, site: str) -> None:
    tab = Tab(browser, site, WIDE, color_scheme="dark")
    assert tab.page.locator("body").get_attribute("data-md-color-scheme") == "slate"
    tab.close()


@needs_browser
@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_a_phone(browser: Any, site: str, page: str) -> None:
    tab = Tab(browser, site + page, PHONE)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    tab.close()


@needs_browser
@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(
    browser: Any, site: str, page: str, size: tuple[int, int], scheme: str
) -> None:
    tab = Tab(browser, site + page, size, color_scheme=scheme)
    assert tab.barriers() == []
    tab.close()
