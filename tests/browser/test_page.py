"""The HTML report as a person uses it: level cell, cases, case; filter, links, keyboard, dark, narrow,
print."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from harness.model.header import Origin
from harness.model.result import Diff
from harness.model.result_key import artifact_name
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from tests import synthetic
from tests.browser.conftest import Open, follow, violations, wait_until, wait_until_shown, written
from tests.render.test_html import HOSTILE
from tests.sampled import one_of
from tests.synthetic import ABSENT, CPU, DML


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    targets = {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}
    run = synthetic.write_explained(folder / "run.jsonl", 3000, targets, faults=0.02)
    return written(folder, run)


def shown(page: Any) -> int:
    """The number of results that the table says it found."""
    text = page.inner_text("#cases [role=status]")
    found = re.match(r"(?:[\d,]+–[\d,]+ of )?([\d,]+) ", text)
    assert found is not None, text
    return int(found[1].replace(",", ""))


def test_from_a_level_cell_to_its_cases_to_one_case_and_back(open_page: Open, report: Path) -> None:
    page = open_page(report)
    cell = page.locator("#levels tbody tr", has_text="dml").first.locator("td.cell a").first
    passed, selected = (
        int(number.replace(",", "")) for number in re.findall(r"[\d,]+", cell.inner_text())[:2]
    )
    follow(cell)
    assert shown(page) == selected
    assert page.locator("#browser select[name=level]").input_value() == "2_1"
    page.select_option("select[name=outcome]", "pass")
    assert shown(page) == passed
    follow(page.locator("#cases tbody a").first)
    assert page.locator("dialog[open] h2").inner_text().startswith("GatherElements@")
    assert page.locator("dialog svg.graph").count() == 1
    assert "outcome=pass" in page.url
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="hidden")
    assert shown(page) == passed
    page.go_back()
    page.go_back()
    wait_until_shown(page, "")
    assert shown(page) == 9000
    assert page.locator("select[name=outcome]").input_value() == ""


def test_a_view_is_a_link(open_page: Open, report: Path) -> None:
    page = open_page(report)
    page.select_option("select[name=target]", "dml")
    page.locator("details.more > summary").click()
    page.select_option("select[name=validity]", "invalid")
    page.fill("input[name=q]", "float16 sweep=outside")
    number = shown(page)
    assert 0 < number < 200
    again = open_page(report, page.evaluate("location.hash"))
    assert shown(again) == number
    assert again.locator("input[name=q]").input_value() == "float16 sweep=outside"
    follow(again.locator("#cases tbody a").first)
    name = again.inner_text("dialog h2").replace("\n", "")
    third = open_page(report, again.evaluate("location.hash"))
    assert third.inner_text("dialog[open] h2").replace("\n", "") == name


@pytest.mark.parametrize(
    ("fragment", "check"),
    [
        (
            "#unexpected=yes",
            lambda result: result.verdict in (Verdict.REGRESSION, Verdict.CHANGED, Verdict.NEW),
        ),
        (
            "#verdict=!expected&target=cpu",
            lambda result: result.verdict is not Verdict.EXPECTED and result.target == "cpu",
        ),
        ("#outcome=crash,timeout", lambda result: result.outcome in (Outcome.CRASH, Outcome.TIMEOUT)),
        (
            "#dtype=float16&rank=3&opset=13",
            lambda result: re.search(r"@13:.*=float16\[\d+,\d+,\d+\];indices", result.case),
        ),
        (
            "#types=indices%3Dint32&level=4_1",
            lambda result: "indices=int32" in result.case and result.levels["directml"] == "4_1",
        ),
        ("#q=AXIS%3D1%20negative", lambda result: "axis=1" in result.case and "negative" in result.case),
        ("#operator=Nothing", lambda result: False),
        ("#rank=%22%3E%3Cb%3E", lambda result: False),
    ],
)
def test_filters_find_what_the_run_holds(open_page: Open, report: Path, fragment: str, check: Any) -> None:
    targets = {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}
    page = open_page(report, fragment)
    expected = sum(bool(check(result)) for result in synthetic.results(3000, targets, faults=0.02))
    assert shown(page) == expected
    rows = page.locator("#cases tbody tr").count()
    assert rows == min(expected, 50)
    assert page.locator("#cases .empty").last.is_visible() == (expected == 0)


def test_every_number_of_a_known_deviation_is_a_link_to_as_many_results(
    open_page: Open, report: Path
) -> None:
    page = open_page(report)
    links = page.locator("#deviations tbody a[href^='#']")
    assert links.count() > 12
    for place in range(links.count()):
        said = re.findall(r"[\d,]+", links.nth(place).evaluate("link => link.firstChild.textContent"))[-1]
        follow(links.nth(place))
        assert shown(page) == int(said.replace(",", "")), links.nth(place).inner_text()
    offered = page.locator("select[name=expectation] option").all_inner_texts()
    assert offered[0] == "any"
    assert sorted(offered[1:])[:2] == ["Element types without a kernel", "GatherElements on DirectML"]


@pytest.mark.parametrize(
    ("number", "verdict", "heading", "said"),
    [
        (3, "expected", "Why it is known", "Element types without a kernel"),
        (7, "!expected", "Not what is expected: mismatch", "documents: The sizes must match."),
        (12, "expected", "Why it is known", "GatherElements on DirectML not reviewed yet"),
    ],
)
def test_a_case_says_why_it_is_known(
    open_page: Open, report: Path, number: int, verdict: str, heading: str, said: str
) -> None:
    page = open_page(report, f"#expectation={number}&verdict={quote(verdict)}")
    total = shown(page)
    follow(page.locator("#cases tbody a").first)
    part = page.locator("dialog section", has=page.locator("h3", has_text=heading))
    assert part.locator("h3").inner_text() == heading
    assert said in " ".join(part.inner_text().split())
    assert part.locator("a").first.get_attribute("href") == synthetic.ENTRIES[number].link
    follow(part.locator("a", has_text="All results"))
    assert (shown(page) == total) is (verdict == "expected")


def test_a_case_that_conforms_names_no_entry(open_page: Open, report: Path) -> None:
    page = open_page(report, "#reading=correct")
    follow(page.locator("#cases tbody a").first)
    headings = page.locator("dialog h3").all_inner_texts()
    assert headings[:2] == ["Results", "What is tested"]


def keep_what_is_copied(page: Any) -> None:
    """Let `window.copied` be what the page copies, in either of its ways."""
    page.evaluate(
        "document.execCommand = () => { window.copied = document.activeElement.value; return true; }"
    )
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})"
    )


def test_a_target_whose_name_holds_commas_and_a_path(open_page: Open, tmp_path: Path) -> None:
    script = "fake,script=/somewhere/else/a b.yaml"
    names = ["cpu", "cpu,threads=2", script]
    run = synthetic.write_run(tmp_path / "run.jsonl", 60, dict.fromkeys(names, CPU), faults=0)
    page = open_page(written(tmp_path, run))
    for name in ("cpu", "cpu,threads=2", "fake,script=…/a b.yaml"):
        page.select_option("select[name=target]", name)
        assert shown(page) == 60, name
        assert set(page.locator("#cases tbody td:nth-child(2)").all_inner_texts()) == {name}
    follow(page.locator("#cases tbody a").first)
    assert page.locator("dialog .command pre").inner_text().startswith(f"harness run -t '{script}' -k ")
    page.keyboard.press("Escape")
    keep_what_is_copied(page)
    page.select_option("select[name=target]", "cpu,threads=2")
    page.get_by_role("button", name="Copy command").click()
    assert page.evaluate("window.copied") == "harness run -t cpu,threads=2"
    link = page.locator("#overview tbody td.cell:nth-of-type(2) a").first
    follow(link)
    assert 0 < shown(page) <= 60
    assert set(page.locator("#cases tbody td:nth-child(2)").all_inner_texts()) == {"cpu,threads=2"}


def test_pages_of_the_table(open_page: Open, report: Path) -> None:
    page = open_page(report)
    first = page.locator("#cases tbody a").first.inner_text()
    page.get_by_role("button", name="Next").click()
    assert page.inner_text("#cases [role=status]").startswith("51–100 of 9,000")
    assert page.locator("#cases tbody a").first.inner_text() != first
    page.get_by_role("button", name="Previous").click()
    assert page.locator("#cases tbody a").first.inner_text() == first
    page.get_by_role("button", name="Clear").click()


def test_commands_that_repeat_what_is_shown(open_page: Open, report: Path) -> None:
    page = open_page(report, "#target=cpu&operator=GatherND&dtype=int8&opset=13")
    keep_what_is_copied(page)
    page.get_by_role("button", name="Copy command").click()
    few = page.evaluate("window.copied")
    assert few.startswith("harness run -t cpu -k 'GatherND@13:")
    page.select_option("select[name=operator]", "GatherElements")
    page.get_by_role("button", name="Copy command").click()
    assert page.evaluate("window.copied") == "harness run -t cpu -k GatherElements@13:data=int8"
    follow(page.locator("#cases tbody a").first)
    page.locator("dialog").get_by_role("button", name="Copy").first.click()
    assert re.fullmatch(r"harness run -t cpu -k '?GatherElements@13:[^']*'?", page.evaluate("window.copied"))


def test_keyboard_alone(open_page: Open, report: Path) -> None:
    page = open_page(report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the cases"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.type("GatherND@13")
    for _ in range(40):
        page.keyboard.press("Tab")
        if (
            page.evaluate("Boolean(document.activeElement.closest('.cases'))")
            and page.evaluate("document.activeElement.tagName") == "A"
        ):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="hidden")


def test_a_link_to_a_case_that_is_not_there(open_page: Open, report: Path) -> None:
    page = open_page(report, "#case=Nope%401%3Aa%3Db&on=cpu")
    assert page.inner_text("dialog[open] .empty") == "This run has no such case."


@pytest.mark.parametrize(
    ("fragment", "scheme", "width"),
    one_of(5, product(["", "#unexpected=yes&case", "#expectation=12&case"], ["light", "dark"], [1280, 400])),
)
def test_axe_finds_nothing(open_page: Open, report: Path, width: int, scheme: str, fragment: str) -> None:
    page = open_page(report, fragment.removesuffix("&case"), width=width, color_scheme=scheme)
    if fragment.endswith("&case"):
        follow(page.locator("#cases tbody a").first)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert violations(page) == []


@pytest.mark.parametrize("width", [400, 768, 1280])
def test_the_page_never_scrolls_sideways(open_page: Open, report: Path, width: int) -> None:
    page = open_page(report, width=width)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    follow(page.locator("#cases tbody a").first)
    assert page.evaluate("document.querySelector('dialog').scrollWidth") <= width


def test_print_holds_whole_tables(open_page: Open, report: Path) -> None:
    page = open_page(report)
    page.emulate_media(media="print")
    assert not page.locator("#cases form").is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('#levels .scroll')).overflowX") == "visible"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 0
    assert len(page.pdf(prefer_css_page_size=True)) > 10_000


def test_without_javascript_the_tables_are_there(chromium: Any, report: Path) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#levels th[scope=rowgroup]").count() == 3
    assert "needs JavaScript" in page.inner_text("#cases")
    context.close()


def test_tensors_of_a_failing_case(open_page: Open, tmp_path: Path) -> None:
    case = "Round@22:sweep=a;X=float32[2,3];values=halves;neighbours=true"
    diff = Diff(1, 2, 6, (0, 2), "2.0 (0x40000000)", "2.0000002 (0x40000001)")
    result = synthetic.result(case, Outcome.MISMATCH, Verdict.REGRESSION, diff=diff)
    run = synthetic.write_results(tmp_path / "run.jsonl", [result], {"cpu": CPU})
    (tmp_path / "artifacts").mkdir()
    expected = np.float32([[0, 2, 2], [-0.0, np.nan, np.inf]])
    actual = expected.copy()
    actual[0, 2], actual[1, 2] = np.nextafter(np.float32(2), np.float32(3)), 1
    np.savez(
        tmp_path / "artifacts" / artifact_name(case, "cpu"),
        input_X=expected,
        expected=expected,
        actual=actual,
    )
    (tmp_path / "artifacts" / "stray.npz").write_bytes(b"damaged")
    page = open_page(written(tmp_path, run))
    follow(page.locator("#cases tbody a").first)
    dialog = page.locator("dialog")
    marked = [" ".join(text.split()) for text in dialog.locator("td.wrong").all_inner_texts()]
    assert marked == ["≠ wrong 2.0", "≠ wrong inf", "≠ wrong 2.0000002", "≠ wrong 1.0"]
    assert dialog.locator("svg.graph .node").count() == 3
    assert "2 of 6 elements differ, at most 1 ULP apart." in dialog.inner_text()
    assert dialog.locator(".histogram tbody tr").count() == 8


def test_hostile_text_stays_text(open_page: Open, tmp_path: Path) -> None:
    results = synthetic.hostile_results(HOSTILE, 40_000)
    info = TargetInfo("CPUExecutionProvider", adapter=HOSTILE[0], options={HOSTILE[2]: HOSTILE[3]})
    run = synthetic.write_results(tmp_path / "run.jsonl", results, {"cpu": info})
    page = open_page(written(tmp_path, run))
    assert page.locator("#cases tbody tr").count() == len(HOSTILE)
    for n in range(len(HOSTILE)):
        follow(page.locator("#cases tbody a").nth(n))
        assert (
            page.locator("dialog[open] pre").first.inner_text().startswith(HOSTILE[n][:5])
            or "\u202e" in HOSTILE[n]
        )
        assert page.locator("dialog img, dialog script, dialog style").count() == 0
        page.keyboard.press("Escape")


@pytest.mark.parametrize(
    ("number", "targets", "faults"),
    [(0, {"cpu": CPU}, 0.0), (200, {"cpu": CPU}, 0.0), (200, {"cpu": CPU}, 1.0), (200, {"dml": ABSENT}, 0.0)],
    ids=["empty", "no failures", "only failures", "unavailable"],
)
def test_every_kind_of_run_opens(
    open_page: Open, tmp_path: Path, number: int, targets: dict[str, TargetInfo], faults: float
) -> None:
    page = open_page(
        written(tmp_path, synthetic.write_run(tmp_path / "run.jsonl", number, targets, faults=faults))
    )
    assert page.locator("#cases tbody tr").count() == min(number, 50)
    assert page.locator("h1").is_visible()


@pytest.mark.slow
def test_200_000_results_stay_usable(open_page: Open, tmp_path: Path) -> None:
    targets = {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}
    page = open_page(written(tmp_path, synthetic.write_run(tmp_path / "run.jsonl", 66_666, targets)))
    assert shown(page) == 199_998
    page.fill("input[name=q]", "negative;draw=3")
    assert 0 < shown(page) < 199_998
    page.select_option("select[name=target]", "dml")
    follow(page.locator("#cases tbody a").first)
    assert page.locator("dialog[open] tbody tr").count() >= 3


def test_a_case_says_what_its_spec_says_of_it(open_page: Open, tmp_path: Path) -> None:
    case = "GatherND@13:sweep=tuple_empty;data=float32[2]"
    told = {
        "GatherND:sweep=tuple_empty": Origin(
            "ONNX GatherND, <b>indices</b>", "an index tuple has at least one number"
        )
    }
    results = [
        synthetic.result(name, Outcome.ACCEPTED_INVALID, Verdict.REGRESSION)
        for name in (case, "GatherND@13:case=of_nothing;data=float32[2]")
    ]
    run = synthetic.write_results(tmp_path / "run.jsonl", results, {"cpu": CPU}, origins=told)
    file = written(tmp_path, run)
    facts = open_page(file, f"#case={quote(case)}&on=cpu").locator("dl.terms").inner_text()
    assert "ONNX GatherND, <b>indices</b>" in facts
    assert "an index tuple has at least one number" in facts
    assert (
        "source"
        not in open_page(file, f"#case={quote('GatherND@13:case=of_nothing;data=float32[2]')}&on=cpu")
        .locator("dl.terms")
        .inner_text()
    )


@pytest.mark.parametrize("width", [390, 800])
def test_no_table_loses_columns_in_a_narrow_window(open_page: Open, report: Path, width: int) -> None:
    page = open_page(report, width=width)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    wait_until(page, "document.querySelectorAll('.labelled').length > 0")
    wider = page.evaluate(
        "[...document.querySelectorAll('main .scroll')].filter((each) => each.clientWidth && !each.querySelector('.heat, .overview')"
        " && each.scrollWidth > each.clientWidth + 1).map((each) => each.ariaLabel ?? each.getAttribute('aria-labelledby'))"
    )
    assert wider == []
    cell = page.locator("#levels .labelled tbody td").first
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") == '"2_1"'
