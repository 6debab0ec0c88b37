"""Sites of many runs: what their pages say, which links they hold, and what happens to other files."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import pytest

from harness.model.case import Validity
from harness.model.result_key import case_anchor
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Reading, Verdict
from harness.results.counted import read_tables
from harness.results.runfile import RunReader
from tests import many, synthetic
from tests.golden import check_golden
from tests.histories import CASE, OTHER, cpu, write_run, write_several
from tests.render.test_html import HOSTILE, parsed
from tests.running import complaint, harness
from tests.synthetic import DML

GOLDEN = Path(__file__).parents[1] / "golden"
INDEX = {"index.html", "support.html", "findings.html", "search.js", "site.css", "site.js", "site.json"}


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def make(folder: Path, *runs: Path) -> Path:
    ended = harness("site", *runs, "-o", folder)
    assert ended.code == 0, ended.err
    return folder


def shown(page: Path) -> str:
    return parsed(page.read_text(encoding="utf-8")).text()


def test_what_the_pages_say(tmp_path: Path) -> None:
    site = make(tmp_path / "site", write_several(tmp_path / "runs"))
    assert files(site) == INDEX | {
        "operators/GatherND.html",
        "operators/Round.html",
        "targets/cpu.html",
        "targets/cpu.svg",
        "targets/dml.html",
        "targets/dml.svg",
    }
    pages = ("index.html", "support.html", "findings.html", "operators/Round.html", "targets/cpu.html")
    check_golden(GOLDEN / "site.txt", "\n".join(f"{name}\n{shown(site / name)}" for name in pages))


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    runs = write_several(tmp_path / "runs")
    one = make(tmp_path / "one", runs)
    other = make(tmp_path / "other", *sorted(runs.iterdir(), reverse=True))
    assert {name: (one / name).read_bytes() for name in files(one)} == {
        name: (other / name).read_bytes() for name in files(other)
    }


class Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")


def read_links(page: Path) -> Links:
    reader = Links()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def broken_links(site: Path) -> Iterator[str]:
    """Yield each link of a site that leads to no file or to no part of one, and each id that a page has
    twice."""
    pages = {path: read_links(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        yield from (f"{path.name}: {name} twice" for name in page.ids if page.ids.count(name) > 1)
        for link in page.links:
            url = urlsplit(link)
            if url.scheme:
                continue
            leads_to = (path.parent / unquote(url.path)).resolve() if url.path else path
            if not leads_to.is_file() or (url.fragment and url.fragment not in pages[leads_to].ids):
                yield f"{path.name}: {link}"


@pytest.mark.slow
def test_every_link_leads_somewhere(tmp_path: Path) -> None:
    many = make(tmp_path / "many", synthetic.write_run(tmp_path / "run.jsonl", 2000, faults=0.05))
    assert list(broken_links(many)) == []
    site = make(tmp_path / "site", write_several(tmp_path / "runs"))
    assert list(broken_links(site)) == []
    (site / "targets" / "cpu.html").unlink()
    assert list(broken_links(site)) != []


def test_counts_are_those_of_the_report(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    synthetic.write_run(path, 2000, {"cpu": synthetic.CPU, "dml": DML}, faults=0.05)
    site = make(tmp_path / "site", path)
    tables = read_tables(RunReader(path))
    for (operator, target), tally in tables.by("operator", "target").items():
        text = shown(site / f"operators/{operator}.html").split(f"\n{target}\n")[-1].splitlines()
        row = next(line for line in text if line.startswith("20"))
        assert f"{tally.correct:,} / {tally.selected:,} " in row, (operator, target)
    total = tables.tally(target="dml")
    row = next(line for line in shown(site / "index.html").splitlines() if line.startswith("dml | 20"))
    numbers = [total.selected, *(total[reading] for reading in Reading)]
    assert row.split(" | ")[3:] == [*(f"{number:,}" for number in numbers), f"✗ {total.unexpected:,}"]


def test_each_case_that_deviates_has_an_address_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    synthetic.write_run(path, 2000, faults=0.05)
    site = make(tmp_path / "site", path)
    ids = {name for page in (site / "operators").iterdir() for name in read_links(page).ids}
    cases = {name for name in ids if name.startswith("c-")}
    deviating = {
        result.case
        for result in RunReader(path)
        if result.outcome not in (Outcome.PASS, Outcome.UNAVAILABLE, Outcome.NOT_RUN)
        and (result.validity is not Validity.UNSPECIFIED or result.reading is Reading.CRASHED)
        and (result.validity is Validity.VALID or result.outcome is not Outcome.REJECTED)
    }
    assert cases == {case_anchor(case) for case in deviating}
    data = json.loads((site / "search.js").read_text()[len("harnessSearch(") :].rstrip()[:-1])
    searched = {
        ";".join(data["parts"][part] for part in parts)
        for *_, cases in data["operators"]
        for _, *parts in cases
    }
    assert searched == deviating


def test_addresses_stay_when_a_case_conforms_again(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", 1, {CASE: "m"})
    write_run(tmp_path / "runs", 2, {CASE: "p"})
    page = make(tmp_path / "site", tmp_path / "runs") / "operators" / "GatherND.html"
    assert case_anchor(CASE) in read_links(page).ids
    assert "correct again 1 × GatherND" in shown(page)


def test_hostile_names_stay_text_and_within_the_folder(tmp_path: Path) -> None:
    names = [*HOSTILE, "../../out", "abs", "Abs", "a/b"]
    results = [
        msgspec.structs.replace(result, target=f"cpu,{n % 2}/../x")
        for n, result in enumerate(synthetic.hostile_results(names, 2_000))
    ]
    targets = {f"cpu,{n}/../x": TargetInfo("CPUExecutionProvider", adapter=HOSTILE[0]) for n in (0, 1)}
    synthetic.write_results(tmp_path / "run.jsonl", results, targets)
    site = make(tmp_path / "site", tmp_path / "run.jsonl")
    assert list(broken_links(site)) == []
    assert len(list((site / "operators").iterdir())) == len(names)
    assert set(tmp_path.iterdir()) == {site, tmp_path / "run.jsonl"}
    assert all(" unexpected<" in badge.read_text("utf-8") for badge in site.rglob("*.svg"))
    for page in site.rglob("*.html"):
        found = parsed(page.read_text(encoding="utf-8"))
        assert found.tags.count("script") == (page.name != "findings.html")
        assert "img" not in found.tags
        assert found.tags.count("style") == (page.name == "findings.html")
        assert not [name for _, name, _ in found.attributes if name.startswith("on")]


def test_a_later_site_replaces_the_earlier_one(tmp_path: Path) -> None:
    site = make(tmp_path / "site", write_run(tmp_path / "one", 1, {CASE: "m"}))
    make(site, write_run(tmp_path / "two", 1, {OTHER: "m"}))
    assert files(site) == INDEX | {"operators/Round.html", "targets/cpu.html", "targets/cpu.svg"}


def test_a_site_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    runs = write_several(tmp_path / "runs")
    site = make(tmp_path / "site", runs)
    (site / "index.html").unlink()
    (site / "targets" / "cpu.html").rename(site / "targets" / "cpu.html.part")
    make(site, runs)
    assert "targets/cpu.html" in files(site)


@pytest.mark.parametrize("name", ["notes.txt", "operators/notes.html", "CNAME"])
@pytest.mark.parametrize("has_site", [True, False])
def test_other_files_are_never_touched(tmp_path: Path, name: str, has_site: bool) -> None:
    runs, site = write_run(tmp_path / "runs", 1, {CASE: "m"}), tmp_path / "site"
    if has_site:
        make(site, runs)
    other = site / name
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_text("mine")
    before = {name: (site / name).read_bytes() for name in files(site)}
    ended = harness("site", runs, "-o", site)
    assert ended.code == 2
    assert complaint(ended) == (
        f"{site}: holds {name}, which no site wrote: name another folder, or move it away"
    )
    assert {name: (site / name).read_bytes() for name in files(site)} == before


def test_a_listing_names_nothing_outside_the_folder(tmp_path: Path) -> None:
    site, other = tmp_path / "site", tmp_path / "other.html"
    other.write_text("mine")
    site.mkdir()
    (site / "site.json").write_text('{"runs": [], "files": ["../other.html"]}')
    make(site, write_run(tmp_path / "runs", 1, {CASE: "m"}))
    assert other.read_text() == "mine"


def test_damaged_runs_are_left_out_and_named(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", 1, {CASE: "m"})
    broken = write_run(tmp_path / "runs", 2, {CASE: "p", OTHER: "m"})
    broken.write_bytes(broken.read_bytes().replace(b'"mismatch"', b'"mismatched"'))
    ended = harness("site", tmp_path / "runs", "-o", tmp_path / "site")
    assert ended.code == 2
    assert ended.err.startswith(f"harness: left out: {broken}:3: damaged run file")
    assert "1 run of 1 target" in shown(tmp_path / "site" / "index.html")
    assert not (tmp_path / "site" / "operators" / "Round.html").exists()


def test_without_a_run_that_can_be_read_the_site_stays(tmp_path: Path) -> None:
    site = make(tmp_path / "site", write_run(tmp_path / "runs", 1, {CASE: "m"}))
    before = (site / "index.html").read_bytes()
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n")
    ended = harness("site", broken, "-o", site)
    assert ended.code == 2
    assert f"no run could be read: {site} stays as it is" in ended.err
    assert (site / "index.html").read_bytes() == before


def test_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    run = write_run(tmp_path / "runs", 1, {CASE: "m"})
    copy = write_run(tmp_path / "copies", 1, {CASE: "m"})
    for asked, code, said in (
        ((), 2, "Missing argument 'RUN...'"),
        ((run,), 2, "Missing option '-o' / '--output'"),
        ((tmp_path / "absent", "-o", tmp_path / "site"), 2, "does not exist; name run files or folders"),
        (
            (tmp_path / "empty", "-o", tmp_path / "site"),
            4,
            "no run.jsonl, run.jsonl.xz, run.jsonl.gz or run.parquet in it",
        ),
        ((run, "-o", tmp_path / "file"), 2, "is a file; -o names a folder"),
        ((run, "-o", tmp_path / "file" / "site"), 2, "cannot be written"),
        ((run, copy, "-o", tmp_path / "site"), 2, "move one of them away"),
    ):
        ended = harness("site", *asked)
        assert (ended.code, said in ended.err) == (code, True), (asked, ended.err)
    assert not (tmp_path / "site").exists()


def test_an_incomplete_run_is_counted_and_named(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", 1, {CASE: "m"}, whole=False)
    ended = harness("site", tmp_path / "runs", "-o", tmp_path / "site")
    assert (ended.code, ended.err) == (4, "harness: incomplete: 20260101T030405Z-7\n")
    text = shown(tmp_path / "site" / "index.html")
    assert "20260101T030405Z-7 is incomplete: only what is in it is counted." in text


def test_releases_of_one_run_are_columns_and_the_newest_speaks(tmp_path: Path) -> None:
    targets = {f"cpu@ort-{version}": cpu(version) for version in ("1.9.0", "1.24.2", "1.23.0")}
    write_run(tmp_path / "runs", 1, {CASE: "mpm", OTHER: "ppm"}, targets)
    site = make(tmp_path / "site", tmp_path / "runs")
    assert "1.9.0 | 1.23.0 | 1.24.2" in shown(site / "index.html")
    page = shown(site / "operators" / "GatherND.html")
    assert "failed from 1.9.0 (2026-01-01 03:04), correct since 1.24.2" in page


def test_judgements_against_a_baseline(tmp_path: Path) -> None:
    """An improvement turns a run red where an expectation is wrong by it, not against an earlier run."""
    path = write_run(tmp_path / "runs", 1, {CASE: "p"})
    (only,) = RunReader(path)
    for expected, verdict in ((True, Verdict.IMPROVEMENT), (False, Verdict.EXPECTED)):
        result = msgspec.structs.replace(only, verdict=verdict)
        synthetic.write_results(path, [result], RunReader(path).header.targets)
        page = make(tmp_path / "site", path) / "operators" / "GatherND.html"
        assert (case_anchor(CASE) in read_links(page).ids) is expected


def test_a_known_deviation_names_its_entry_and_links_its_source(tmp_path: Path) -> None:
    path = synthetic.write_explained(tmp_path / "run.jsonl")
    entries = RunReader(path).header.expectations
    named = {
        result.expectation
        for result in RunReader(path)
        if result.verdict is Verdict.EXPECTED and result.validity is not Validity.UNSPECIFIED
    } & entries.keys()
    pages = list((make(tmp_path / "site", path) / "operators").iterdir())
    text, links = "".join(map(shown, pages)), [link for page in pages for link in read_links(page).links]
    assert named
    for number in named:
        assert re.search(rf"(wrong|crashed|accepted|not supported): {re.escape(entries[number].name)}", text)
        assert entries[number].link in links
    findings = tmp_path / "site" / "findings.html"
    said = shown(findings)
    for number in named:
        assert said.count(f": {entries[number].name}") >= 1
        assert entries[number].reason in said
        assert entries[number].link in read_links(findings).links


def test_findings_are_ordered_and_say_since_when(tmp_path: Path) -> None:
    """What turns a run red comes first, then what a release began, then what never was right."""
    old = {CASE: "p", OTHER: "m", OTHER.replace("halves", "more"): "m"}
    write_run(tmp_path / "a", 1, old, {"cpu@ort-1.22.0": cpu("1.22.0")})
    write_run(tmp_path / "b", 2, {**old, CASE: "m"}, {"cpu@ort-1.23.0": cpu("1.23.0")})
    text = shown(make(tmp_path / "site", tmp_path / "a", tmp_path / "b") / "findings.html")
    began, never = text.index("fails since 1.23.0"), text.index("fails since 1.22.0")
    assert began < never
    assert f"harness run -t cpu@ort-1.23.0 -k '{CASE}'" in text
    assert "last correct on 1.22.0" in text[began:never]
    assert "2 findings in 2 runs" in text


@pytest.mark.slow
def test_a_hundred_operators_in_twenty_runs_stay_below_20_mib(tmp_path: Path) -> None:
    for day in range(1, 21):
        targets = {
            name: msgspec.structs.replace(info, onnxruntime=f"1.{day}.0")
            for name, info in many.TARGETS.items()
        }
        folder = tmp_path / "runs" / f"{day:02}"
        folder.mkdir(parents=True)
        found = list(many.results(100, 60, seed=day))
        synthetic.write_results(folder / "run.jsonl", found, targets, run_id=f"202601{day:02}T030405Z-7")
    site = make(tmp_path / "site", tmp_path / "runs")
    assert len(list((site / "operators").iterdir())) == 100
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    assert size < 20 << 20
    assert list(broken_links(site)) == []


def test_a_later_small_run_replaces_no_complete_one(tmp_path: Path) -> None:
    """A cell is of the run of its release with the most cases, and says when another release has more."""
    more = {CASE.replace("batched", f"b{number}"): "p" for number in range(3)}
    write_run(tmp_path / "runs", 1, {**more, CASE: "m"})
    write_run(tmp_path / "runs", 2, {CASE: "p"})
    write_run(tmp_path / "runs", 3, {CASE: "p"}, {"cpu": cpu("1.24.0")})
    text = shown(make(tmp_path / "site", tmp_path / "runs") / "index.html")
    assert "GatherND | ~1 known defects, 3 / 4 correct | ✓ part: 1 of 4 all correct, 1 / 1 correct" in text


def test_a_badge_says_what_the_newest_run_of_a_target_found(tmp_path: Path) -> None:
    site = make(tmp_path / "site", write_several(tmp_path / "runs"))
    assert "cpu 1.23.0: 2 wrong, all known" in (site / "targets" / "cpu.svg").read_text("utf-8")
    run = write_run(tmp_path / "one", 1, {CASE: "p"}, {"cpu": cpu("1.23.0")})
    badge = make(tmp_path / "correct", run) / "targets" / "cpu.svg"
    assert "cpu 1.23.0: none wrong" in badge.read_text("utf-8")


def test_an_element_type_has_an_address_where_every_release_shows_it(tmp_path: Path) -> None:
    for day, (version, letter) in enumerate([("1.22.0", "m"), ("1.23.0", "p")], start=1):
        write_run(tmp_path / "runs", day, {CASE: letter}, {"cpu@ort-" + version: cpu(version)})
    site = make(tmp_path / "site", tmp_path / "runs")
    page = (site / "operators" / "GatherND.html").read_text("utf-8")
    (row,) = re.findall(r'<tr id="float32">(.*?)</tr>', page)
    assert re.findall(r'<td class="cell (\w+)">', row) == ["known", "pass"]
    assert "operators/GatherND.html#float32" in (site / "support.html").read_text("utf-8")


def test_a_target_shows_its_numbers_by_release(tmp_path: Path) -> None:
    for day, (version, letter) in enumerate([("1.22.0", "m"), ("1.23.0", "p")], start=1):
        write_run(tmp_path / "runs", day, {CASE: letter}, {"cpu@ort-" + version: cpu(version)})
    page = (make(tmp_path / "site", tmp_path / "runs") / "targets" / "cpu.html").read_text("utf-8")
    assert 'aria-label="defects: 1 in 1.22.0, 0 in 1.23.0"' in page
