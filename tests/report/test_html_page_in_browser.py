"""A report in a real browser: it sorts, filters, links and prints without an error or a request."""

import base64
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.example_records import predict, result, rival, write
from tfstudy.analysis.collection import read_finished_runs
from tfstudy.report.html_page import publish

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
GOLD = "a b c d"
HOSTILE = '<img src="http://example.invalid/x.png" onerror="alert(1)"> \u05e9\u05dc\u05d5\u05dd'
COLUMN = """
return [...document.querySelectorAll("#rows tbody tr")]
  .filter((row) => !row.hidden).map((row) => row.cells[arguments[0]].innerText.trim());
"""
CONTRAST = """
const linear = (v) => (v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
const light = (colour) => {
  const [red, green, blue] = colour.match(/[\\d.]+/g).map((v) => linear(v / 255));
  return .2126 * red + .7152 * green + .0722 * blue;
};
const ground = (one) => {
  for (; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!/, 0\\)$/.test(colour)) return colour;
  }
};
const contrast = (one) => {
  const [most, least] = [getComputedStyle(one).color, ground(one)].map(light).sort((a, b) => b - a);
  return (most + .05) / (least + .05);
};
const says = (one) => one.checkVisibility() && [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
return Math.min(...[...document.querySelectorAll("body *")].filter(says).map(contrast));
"""  # of WCAG 2: the least of all texts
OPEN = "document.querySelectorAll('details').forEach((one) => (one.open = true))"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """The report of a study of three architectures."""
    folder = tmp_path_factory.mktemp("browser")
    made = [result(seed, 0.09 + seed / 100) for seed in range(3)] + [rival(seed, 0.8 + seed / 50) for seed in range(3)]
    study = write(folder / "study", *made, rival(0, 1.0, "transformer"))
    predict(study, (GOLD, GOLD), (GOLD, "a b"), (GOLD, "a x c d"), (GOLD, HOSTILE))
    return publish(read_finished_runs(study), folder / "out")[0]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A Chromium without a window, that keeps its messages and requests."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("no chromium with its chromedriver on this machine")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, page):
    """The page, opened again."""
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.get(page.as_uri())
    return browser


def find(opened, selector):
    return opened.find_element("css selector", selector)


def head(opened, name):
    [found] = [one for one in opened.find_elements("css selector", "#rows th button") if one.text == name]
    return found


def test_it_opens_without_an_error_or_a_request(opened, page):
    opened.execute_script(OPEN)
    assert opened.get_log("browser") == []
    requests = [
        line["message"] for line in opened.get_log("performance") if '"Network.requestWillBeSent"' in line["message"]
    ]
    addresses = [text.split('"url":"')[-1].split('"')[0] for text in requests]
    assert addresses
    assert all(one.startswith((page.as_uri(), "data:")) for one in addresses), addresses
    assert opened.execute_script(
        "return [...document.images].every(image => image.naturalWidth > 100 || !image.checkVisibility())"
    )
    assert opened.execute_script("return document.querySelectorAll('article img').length") == 0


def test_a_click_on_a_head_sorts_and_the_third_one_undoes_it(opened):
    place = [one.text for one in opened.find_elements("css selector", "#rows th[scope=col]")].index("exact match")
    button = head(opened, "exact match")
    cell = button.find_element("xpath", "..")
    firsts = []
    for order in ("ascending", "descending", "none"):
        button.click()
        assert cell.get_attribute("aria-sort") == order
        firsts.append([text.split()[0] for text in opened.execute_script(COLUMN, place)])
    assert firsts == [["10.0", "82.0", "100.0"], ["100.0", "82.0", "10.0"], ["82.0", "10.0", "100.0"]]


def test_what_is_empty_is_sorted_last_either_way(opened):
    place = [one.text for one in opened.find_elements("css selector", "#rows th[scope=col]")].index("group")
    for _ in range(2):
        head(opened, "group").click()
        assert opened.execute_script(COLUMN, place)[-1] == ""


def test_heads_sort_by_the_keyboard(opened):
    opened.execute_script("arguments[0].focus()", head(opened, "architecture"))
    for key in ("\ue007", " "):  # return
        opened.switch_to.active_element.send_keys(key)
    assert opened.execute_script(COLUMN, 1) == ["transformer", "lstm", "cnn"]
    assert opened.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_first_key_leads_to_the_content(opened):
    find(opened, "body").send_keys("\ue004")  # tab
    assert opened.switch_to.active_element.text == "Skip to the verdict"


def test_words_filter_the_rows_and_are_counted(opened):
    box = find(opened, "[data-filter]")
    box.send_keys("LENGTH lstm")
    assert opened.execute_script(COLUMN, 1) == ["lstm"]
    assert find(opened, "#table output").text == "1 of 3 rows"
    box.clear()
    box.send_keys("nothing of the kind")
    assert opened.execute_script(COLUMN, 1) == []


def test_errors_are_filtered_by_kind_and_architecture(opened):
    from selenium.webdriver.support.select import Select

    Select(find(opened, "[data-choose=arch]")).select_by_visible_text("lstm")
    Select(find(opened, "[data-choose=kind]")).select_by_visible_text("stops early")
    shown = [one for one in opened.find_elements("css selector", "article[data-arch]") if one.is_displayed()]
    assert [one.get_attribute("data-arch") for one in shown] == ["lstm"]
    kinds = [one for one in shown[0].find_elements("css selector", "details") if one.is_displayed()]
    assert [one.get_attribute("data-kind") for one in kinds] == ["stops early"]
    assert find(opened, "#errors output").text == "1 of 3 conditions"
    kinds[0].find_element("css selector", "summary").click()
    assert [one.text for one in kinds[0].find_elements("css selector", "mark")] == ["c", "(end)"] * 3


def test_a_number_opens_the_folders_of_its_runs(opened):
    summary = find(opened, "#rows td details summary")
    summary.click()
    links = summary.find_elements("xpath", "../ul//a")
    assert [link.text for link in links] == ["seed 0: 80.0", "seed 1: 82.0", "seed 2: 84.0"]
    folders = [Path(unquote(urlsplit(link.get_attribute("href")).path)) for link in links]
    assert all((folder / "result.json").exists() for folder in folders)
    find(opened, "#rows td.number > a[href^='#row-']").click()
    assert opened.execute_script("return document.querySelector(':target').textContent").startswith("length, cnn")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_told_from_its_ground(opened, scheme):
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    opened.execute_script(OPEN)
    assert opened.execute_script(CONTRAST) >= 4.5


def test_a_phone_shows_it_without_scrolling_sideways(opened):
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    opened.execute_script(OPEN)
    try:
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_main_figure_and_the_verdict_are_on_the_first_screen(opened):
    top = "return document.querySelector(arguments[0]).getBoundingClientRect()[arguments[1]]"
    for selector in (".main img.wide", "#verdict-head"):
        assert opened.execute_script(top, selector, "top") < 400
    assert opened.execute_script(top, ".main img.wide", "bottom") < 800


def test_a_phone_shows_results_without_scrolling_a_table(opened):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        result = find(opened, "#rows td.result")
        assert result.text.startswith("82.0 [")
        assert opened.execute_script("return arguments[0].getBoundingClientRect().right", result) <= 390
        widths = "const box = document.querySelector('#table .scroll'); return [box.scrollWidth, box.clientWidth]"
        whole, seen = opened.execute_script(widths)
        assert whole <= seen
        assert find(opened, ".main img.narrow").is_displayed()
        assert not find(opened, ".main img.wide").is_displayed()
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_prints(opened):
    printed = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000
