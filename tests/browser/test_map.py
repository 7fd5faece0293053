"""The map in a browser: points, colours, a query and its hits, keys, and a search within what was chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.accessibility import assert_accessible
from tests.browser.opener import LANGUAGES, SCHEMES, WIDTHS, Language, PageOpener, Scheme, Width, keep_screenshot
from tests.browser.sample import open_sample
from tests.browser.served import ServedPage, serve_page

# What is drawn in the middle and around each document, by its colour.
_COUNT_COLORS = """() => {
    const canvas = document.getElementById("canvas");
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
    const colors = new Set();
    for (let at = 0; at < pixels.length; at += 4)
        if (pixels[at + 3] > 200) colors.add(`${pixels[at] >> 5},${pixels[at + 1] >> 5},${pixels[at + 2] >> 5}`);
    return colors.size;
}"""


SUBJECTS = {
    "bakery": "Knead the dough, let it rise, and bake the bread in a hot oven.",
    "harbour": "The tide comes in and the boats leave for the open sea.",
    "telescope": "It shows the rings of a planet and the craters of the moon.",
    "orchestra": "Violins, cellos and horns play a symphony in the concert hall.",
    "railway": "A train stops at the station and passengers change platforms.",
    "vineyard": "Grapes are picked in autumn and pressed for wine.",
    "hospital": "The surgeon and the nurses look after a patient with a fever.",
    "parliament": "Members vote on a law after a long debate about taxes.",
    "database": "An index makes queries on a table of rows fast.",
}
WORDS = ["north", "quiet", "amber", "seven", "wooden", "early", "narrow", "copper"]


def titles(page: Page) -> list[str]:
    return page.locator("#map-list a").all_inner_texts()


def wait_for_list(page: Page, heading: str) -> None:
    expect(page.locator("#list-title")).to_have_text(re.compile(heading))


def drag(page: Page, *points: tuple[float, float]) -> None:
    """Draw a line over the map; places are parts of its width and height."""
    box = page.locator("#canvas").bounding_box()
    assert box
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def test_the_map_shows_points_in_the_colours_of_its_legend(open_page: PageOpener) -> None:
    page = open_page("/map")
    expect(page.locator("#legend li")).to_have_count(4)
    assert page.evaluate(_COUNT_COLORS) > 4
    wait_for_list(page, "in view: 12")
    page.get_by_label("Colour by").select_option("year")
    expect(page.locator("#legend li").first).to_contain_text("2025")
    assert page.url.endswith("/map?color=year")
    button = page.locator("#legend button").first
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    keep_screenshot(page, "map/one-year-lit")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_search_lights_what_it_finds_and_shows_where_the_query_is(open_page: PageOpener, language: Language) -> None:
    page = open_page("/map", language=language)
    with page.expect_response(re.compile("/map/position")) as answered:
        page.locator("#query").fill("京都")
    wait_for_list(page, "found" if language == "en" else "見つかった文書")
    assert titles(page)[0] == "京都への社員旅行"
    assert "q=%E4%BA%AC%E9%83%BD" in page.url
    assert isinstance(answered.value.json()["x"], float)
    open_page.settle(page)
    keep_screenshot(page, f"map/found-{language}")


def test_keys_go_from_document_to_document_and_open_one(open_page: PageOpener) -> None:
    page = open_page("/map")
    page.locator("#canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tip")).to_be_visible()
    first = page.locator("#tip strong").inner_text()
    expect(page.locator("#map-status")).to_contain_text(first)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#tip strong")).not_to_have_text(first)
    keep_screenshot(page, "map/with-keys")
    assert_accessible(page)
    name = page.locator("#tip strong").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(name)


def test_what_a_line_encloses_is_searched(open_page: PageOpener) -> None:
    page = open_page("/map")
    wait_for_list(page, "in view: 12")
    page.locator("#lasso").click()
    drag(page, (0.02, 0.02), (0.5, 0.02), (0.5, 0.98), (0.02, 0.98), (0.02, 0.05))
    expect(page.locator("#chosen")).to_be_visible()
    count = int(re.sub(r"\D", "", page.locator("#chosen span").inner_text()))
    assert 0 < count < 12
    wait_for_list(page, f"chosen: {count}")
    keep_screenshot(page, "map/chosen")
    assert_accessible(page)
    chosen = set(titles(page))
    page.get_by_role("button", name="Search within").click()
    expect(page.locator(".selection")).to_contain_text(str(count))
    page.locator("#query").fill("the")
    open_page.settle(page)
    assert "selection=" in page.url
    trails = page.locator(".result").all_inner_texts()
    assert trails
    assert all(any(title in text for title in chosen) for text in trails)
    keep_screenshot(page, "map/search-within")
    page.get_by_role("link", name="Search everywhere").click()
    assert "selection=" not in page.url


def test_what_is_in_view_is_chosen_without_a_line(open_page: PageOpener) -> None:
    page = open_page("/map")
    wait_for_list(page, "in view: 12")
    page.get_by_role("button", name="Choose what is in view").press("Enter")
    expect(page.locator("#chosen span")).to_have_text("Documents chosen: 12")
    page.locator("#canvas").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#chosen")).to_be_hidden()


@pytest.mark.parametrize("width", ["desktop"])
def test_the_wheel_zooms_where_the_pointer_is(open_page: PageOpener, width: Width) -> None:
    page = open_page("/map", width=width)
    wait_for_list(page, "in view: 12")
    box = page.locator("#canvas").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.9)
    page.mouse.wheel(0, -1500)
    wait_for_list(page, r"in view: \d$")
    page.get_by_role("button", name="Show all").click()
    page.locator("#canvas").hover()
    page.mouse.wheel(0, 1)
    wait_for_list(page, "in view: 12")


@pytest.fixture(scope="module")
def subjects_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """A library of nine subjects, each with two dozen documents."""
    folder = tmp_path_factory.mktemp("subjects")
    for subject in SUBJECTS:
        (folder / "documents" / subject).mkdir(parents=True)
        for number in range(24):
            text = f"# {subject.capitalize()} {WORDS[number % 8]}\n\n{SUBJECTS[subject]} {WORDS[number // 3]}.\n"
            (folder / "documents" / subject / f"{number:02}.md").write_text(text, "utf-8")
    with open_sample(folder / "library") as library:
        library.add(folder / "documents", name="documents")
        library.import_()
    with serve_page(folder / "library") as served:
        yield served


@pytest.fixture
def open_subjects(browser: Browser, subjects_page: ServedPage) -> Iterator[PageOpener]:
    opener = PageOpener(browser, subjects_page)
    yield opener
    opener.close()
    assert opener.problems == []


def subject_of(name: str) -> str:
    """Return the subject that a name is about."""
    texts = {subject: f"{subject} {sentence}".casefold() for subject, sentence in SUBJECTS.items()}
    return next(subject for subject, text in texts.items() if name.casefold().partition(" ")[0] in text)


def subject_names(page: Page) -> list[str]:
    return page.locator("#areas a").all_inner_texts()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_map_says_what_lies_where(open_subjects: PageOpener, width: Width, scheme: Scheme) -> None:
    page = open_subjects("/map", width=width, scheme=scheme)
    wait_for_list(page, "in view: 216")
    names = subject_names(page)
    assert len(names) > 5
    assert len({subject_of(name) for name in names}) > 5
    assert page.get_by_label("Colour by").input_value() == "folder"
    assert page.url.endswith("/map"), "what was chosen for the reader is not in the address"
    keep_screenshot(page, f"map/names-{width}-{scheme}")
    assert_accessible(page)


def test_a_name_leads_to_what_lies_there(open_subjects: PageOpener) -> None:
    page = open_subjects("/map")
    wait_for_list(page, "in view: 216")
    name = subject_names(page)[0]
    page.get_by_role("link", name=name, exact=True).press("Enter")
    expect(page.locator("#map-status")).to_contain_text(name)
    expect(page.locator("#list-title")).not_to_have_text(re.compile("216"))
    assert any(title.startswith(subject_of(name).capitalize()) for title in titles(page))
    expect(page.locator("#areas a").first).to_be_focused()
    count = int(re.sub(r"\D", "", page.locator("#chosen span").inner_text()))
    keep_screenshot(page, "map/near")
    page.get_by_role("button", name="Search within").click()
    expect(page.locator(".selection")).to_contain_text(str(count))


def test_a_name_on_the_map_is_pressed(open_subjects: PageOpener) -> None:
    page = open_subjects("/map")
    wait_for_list(page, "in view: 216")
    box = page.locator("#canvas").bounding_box()
    assert box
    # A pointer over a name shows it can be pressed, and no document.
    for step in range(900):
        x, y = box["x"] + 40 * (step % 30) + 20, box["y"] + 16 * (step // 30) + 8
        page.mouse.move(x, y)
        if "over" in str(page.locator("#canvas").get_attribute("class")) and page.locator("#tip").is_hidden():
            page.mouse.click(x, y)
            break
    expect(page.locator("#list-title")).not_to_have_text(re.compile("216"))
    expect(page.locator("#map-status")).to_contain_text("documents")


def test_an_address_of_a_subject_begins_there(open_subjects: PageOpener) -> None:
    page = open_subjects("/map")
    wait_for_list(page, "in view: 216")
    address = page.locator("#areas a").first.get_attribute("href")
    page = open_subjects(str(address))
    expect(page.locator("#list-title")).to_have_text(re.compile(r"in view: \d\d?$"))
    page = open_subjects(str(address), javascript=False)
    expect(page.locator("#list-title")).to_have_text(re.compile(r": \d+ documents"))
    assert len(titles(page)) > 5


def test_colours_show_folders_languages_and_kinds(open_subjects: PageOpener) -> None:
    page = open_subjects("/map?color=language")
    expect(page.locator("#legend li")).to_have_text(["English 216"])
    page.get_by_label("Colour by").select_option("kind")
    expect(page.locator("#legend li")).to_have_text([".md 216"])
    assert page.url.endswith("color=kind")


def test_colours_chosen_while_the_map_is_drawn_are_kept(open_page: PageOpener) -> None:
    page = open_page("/")
    first: list[Route] = []  # its answer comes after that of the chosen colour
    page.route("**/api/v1/map?", lambda route: first.append(route))
    with page.expect_request("**/api/v1/map?*"):
        page.goto(f"{page.url.rstrip('/')}/map", wait_until="commit")
    page.get_by_label("Colour by").select_option("year")
    expect(page.locator("#legend li").first).to_contain_text("2025")
    first[0].continue_()
    page.wait_for_timeout(500)
    expect(page.locator("#legend li").first).to_contain_text("2025")
    assert page.get_by_label("Colour by").input_value() == "year"


def test_a_change_of_the_library_changes_the_map_by_itself(open_own_page: PageOpener) -> None:
    page = open_own_page("/map")
    wait_for_list(page, "in view: 12")
    open_own_page.library.delete_tool("travel")
    wait_for_list(page, "in view: 10")
    expect(page.locator("#legend li")).to_have_count(3)


def test_without_scripts_there_is_a_list(open_page: PageOpener) -> None:
    page = open_page("/map", javascript=False)
    expect(page.locator("#map-list li")).to_have_count(12)
    expect(page.locator("#canvas")).to_be_hidden()
    page.locator("#query").fill("京都")
    page.keyboard.press("Enter")
    expect(page.locator("#map-list a").first).to_have_text("京都への社員旅行")
