from __future__ import annotations

import html.parser
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment

from harness.model.cache_folder import CACHE_ENV
from harness.model.target_info import TargetInfo
from harness.render.html import environment, query, render_html
from tests import synthetic
from tests.golden import check_golden
from tests.synthetic import ABSENT, CPU, DML

GOLDEN = Path(__file__).parent.parent / "golden"
HOSTILE = [
    "</script><script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "{{ 7 * 7 }}{% raw %}",
    "<!-- --><![CDATA[ ]]>",
    "\u202egnp.exe\u2066",
]


class Text(html.parser.HTMLParser):
    """Reads a page as a person does: a line for each row or block, no styles and no scripts."""

    BLOCKS = frozenset(
        {"tr", "p", "li", "h1", "h2", "h3", "dt", "dd", "summary", "figcaption", "nav", "section"}
    )

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = [""]
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.silent += tag in ("style", "script")
        if tag in self.BLOCKS:
            self.lines.append("")
        elif tag in ("td", "th"):
            self.lines[-1] += " | " if self.lines[-1].strip() else ""

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in ("style", "script")
        if tag in self.BLOCKS:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.lines[-1] += data

    def text(self) -> str:
        return "\n".join(filter(None, (" ".join(line.split()) for line in self.lines))) + "\n"


def parsed(page: str) -> Text:
    reader = Text()
    reader.feed(page)
    return reader


@pytest.mark.parametrize(
    ("name", "number", "targets", "faults", "whole"),
    [
        ("page_failures.txt", 3000, {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}, 0.002, True),
        ("page_good.txt", 3000, {"cpu": CPU}, 0.0, True),
        ("page_only_failures.txt", 300, {"cpu": CPU}, 1.0, True),
        ("page_unavailable.txt", 300, {"dml": ABSENT}, 0.0, True),
        ("page_cut_off.txt", 300, {"cpu": CPU}, 0.0, False),
        ("page_empty.txt", 0, {"cpu": CPU}, 0.0, True),
    ],
)
def test_what_the_page_says(
    tmp_path: Path, name: str, number: int, targets: dict[str, TargetInfo], faults: float, whole: bool
) -> None:
    path = synthetic.write_run(tmp_path / "run.jsonl", number, targets, faults=faults, whole=whole)
    check_golden(GOLDEN / name, parsed(render_html(path)).text())


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    results = synthetic.hostile_results(HOSTILE)
    info = TargetInfo("CPUExecutionProvider", adapter=HOSTILE[0], options={HOSTILE[2]: HOSTILE[3]})
    return synthetic.write_results(tmp_path / "run.jsonl", results, {"cpu": info})


def test_hostile_text_adds_no_markup(hostile: Path, tmp_path: Path) -> None:
    page = render_html(hostile)
    found = parsed(page)
    assert found.tags.count("script") == 2
    assert found.tags.count("style") == 1
    assert "img" not in found.tags
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    assert "\u202e" not in page
    assert "{{ 7 * 7 }}" in found.text()
    assert len(page) < 300_000


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    page = render_html(synthetic.write_run(tmp_path / "run.jsonl", 300))
    found = parsed(page)
    assert not [
        (tag, name) for tag, name, _ in found.attributes if name in ("src", "srcset", "action", "data")
    ]
    assert all(value and value.startswith("#") for tag, name, value in found.attributes if name == "href")
    assert not re.search(r"url\((?!#)", page)
    assert "default-src 'none'" in page


def test_ids_are_unique_and_links_have_their_places(tmp_path: Path) -> None:
    found = parsed(render_html(synthetic.write_run(tmp_path / "run.jsonl", 3000)))
    ids = [value for _, name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    places = {
        value[1:] for _, name, value in found.attributes if name == "href" and value and "=" not in value
    }
    assert places <= set(ids)
    labels = {value for _, name, value in found.attributes if name == "aria-labelledby"}
    assert labels - {"case-title"} <= set(ids)


def test_the_same_run_gives_the_same_bytes_wherever_it_lies(tmp_path: Path) -> None:
    first = synthetic.write_run(tmp_path / "run.jsonl", 500)
    (tmp_path / "elsewhere").mkdir()
    second = tmp_path / "elsewhere" / "other.jsonl"
    second.write_bytes(first.read_bytes())
    assert render_html(first) == render_html(second)
    assert str(tmp_path) not in render_html(first)


def test_a_query_escapes_what_a_fragment_cannot_hold() -> None:
    assert query(case="a&b=c#d%;é", level="") == "case=a%26b%3Dc%23d%25%3B%C3%A9"


class TestCompiledTemplates:
    @pytest.fixture(autouse=True)
    def anew(self) -> Iterator[None]:
        environment.cache_clear()
        yield
        environment.cache_clear()

    def test_are_kept_and_used_again(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv(CACHE_ENV, str(tmp_path))
        fresh = environment().get_template("legend.html.j2")
        assert list(tmp_path.rglob("*.cache"))
        environment.cache_clear()
        monkeypatch.setattr(Environment, "_compile", lambda *_: pytest.fail("compiled again"))
        assert environment().get_template("legend.html.j2").name == fresh.name

    def test_are_made_anew_where_nothing_can_be_kept(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv(CACHE_ENV, str(tmp_path / "file"))
        assert environment().get_template("legend.html.j2").name == "legend.html.j2"
