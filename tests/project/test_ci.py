"""The GitHub Action and the files of docs/ci.md and docs/site.md: as the published schemas ask, and the action's script in a
run of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.running import harness, script_of

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github" / "actions" / "conformance"
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
SITE = (ROOT / "docs" / "site.md").read_text(encoding="utf-8")
SPEC = """\
operator: Round
opsets: [22]
sweeps:
  - name: zero_rank
    X: {dtype: float32, shape: [[]]}
  - name: sizes
    X: {dtype: [float32, float16], shape: [[1], [2], [3]]}
"""
WRONG = "Round@22:sweep=sizes;X=float16"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a checkout with a spec and a target that is wrong in three cases."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "Round.yaml").write_text(SPEC, encoding="utf-8")
    script_of(tmp_path, [(WRONG, "shape")])
    return tmp_path


def blocks() -> list[tuple[str, str]]:
    """Return the files of the pages, each with the schema that it is held to."""
    found = re.findall(r"```yaml\n(.*?)```", PAGE + SITE, re.DOTALL)
    return [("vendor.gitlab-ci" if "script:" in text else "vendor.github-workflows", text) for text in found]


def check(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    if find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema, which has the published schemas, is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(command, capture_output=True, text=True)


class TestSchemas:
    def test_the_action(self) -> None:
        ended = check("vendor.github-actions", ACTION / "action.yml")
        assert ended.returncode == 0, ended.stdout

    def test_the_schema_tells_a_wrong_action(self, tmp_path: Path) -> None:
        text = (ACTION / "action.yml").read_text(encoding="utf-8")
        (tmp_path / "action.yml").write_text(
            text.replace("using: composite", "using: compositum"), encoding="utf-8"
        )
        assert check("vendor.github-actions", tmp_path / "action.yml").returncode == 1

    @pytest.mark.parametrize(
        "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name
    )
    def test_the_project_s_own_workflows(self, path: Path) -> None:
        ended = check("vendor.github-workflows", path)
        assert ended.returncode == 0, ended.stdout

    @pytest.mark.parametrize(
        ("schema", "path"),
        [
            ("vendor.dependabot", "dependabot.yml"),
            ("vendor.github-issue-config", "ISSUE_TEMPLATE/config.yml"),
            ("vendor.github-issue-forms", "ISSUE_TEMPLATE/defect.yml"),
            ("vendor.github-issue-forms", "ISSUE_TEMPLATE/deviation.yml"),
        ],
    )
    def test_the_forms(self, schema: str, path: str) -> None:
        ended = check(schema, ROOT / ".github" / path)
        assert ended.returncode == 0, ended.stdout

    @pytest.mark.parametrize(
        ("schema", "text"), blocks(), ids=["github", "github in parts", "gitlab", "site"]
    )
    def test_the_page(self, tmp_path: Path, schema: str, text: str) -> None:
        (tmp_path / "file.yml").write_text(text, encoding="utf-8")
        ended = check(schema, tmp_path / "file.yml")
        assert ended.returncode == 0, ended.stdout


def test_the_page_gives_inputs_that_the_action_has() -> None:
    inputs = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))["inputs"]
    table = PAGE[PAGE.index("| Input |") : PAGE.index("The job's summary")]
    assert {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`([a-z-]+)`", row)
    } == set(inputs)
    for _, text in blocks()[:2]:
        for job in yaml.safe_load(text)["jobs"].values():
            given = [step["with"] for step in job["steps"] if "conformance@" in step["uses"]]
            assert set().union(*given) <= set(inputs)


def test_every_input_reaches_the_script_as_a_variable() -> None:
    """An input within the script's text would be read as code."""
    steps = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    run = [step for step in steps if "run" in step]
    assert not [step for step in run if "${{" in step["run"]]
    script = (ACTION / "run.sh").read_text(encoding="utf-8")
    assert all(name in script for name in run[-1]["env"])


def test_the_file_that_names_the_cache_is_there() -> None:
    text = (ACTION / "action.yml").read_text(encoding="utf-8")
    (path,) = re.findall(r"\$ACTION/(\S+?)\"", text.replace("$ACTION/run.sh", ""))
    assert (ACTION / path).is_file()


def test_actions_are_pinned_by_hash() -> None:
    files = sorted((ROOT / ".github").rglob("*.yml"))
    used = [
        line.strip()
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert len(used) > 20
    assert not [line for line in used if not re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v[0-9.]+$", line)]


class TestAnnotations:
    def test_one_stands_for_an_entry_at_its_line(self, checkout: Path) -> None:
        assert harness("run", "Round.yaml", "-t", "fake,script=script.yaml", "-o", "run").code == 1
        assert harness("annotate", "run").out.splitlines() == [
            "::error file=Round.yaml,line=6,title=Round on fake%2Cscript=script.yaml::regression: mismatch · 1 of 1 differ: "
            "expected float16[1], actual float16[1,1] (and 2 more of sweep=sizes)%0ARound@22:sweep=sizes;X=float16[1]"
        ]

    def test_a_green_run_has_none(self, checkout: Path) -> None:
        harness("run", "Round.yaml", "-t", "fake", "-o", "run")
        assert harness("annotate", "run") == (0, "", "")

    def test_a_spec_that_is_gone_costs_the_line_alone(self, checkout: Path) -> None:
        harness("run", "Round.yaml", "-t", "fake,script=script.yaml", "-o", "run")
        (checkout / "Round.yaml").unlink()
        assert harness("annotate", "run").out.startswith(
            "::error title=Round on fake%2Cscript=script.yaml::regression: "
        )

    def test_a_named_spec_that_is_missing_is_told_though_the_run_is_green(self, checkout: Path) -> None:
        harness("run", "Round.yaml", "-t", "fake", "-o", "run")
        ended = harness("annotate", "run", "nowhere.yaml")
        assert ended == (2, "", "harness: nowhere.yaml: cannot read: No such file or directory\n")
        Path("list.yaml").write_text("[]\n")
        ended = harness("annotate", "run", "list.yaml")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("harness: list.yaml:1: a spec should be a mapping")

    def test_specs_that_moved_are_found_where_they_are_named(self, checkout: Path) -> None:
        harness("run", "Round.yaml", "-t", "fake,script=script.yaml", "-o", "run")
        Path("Round.yaml").rename("moved.yaml")
        assert harness("annotate", "run", "moved.yaml").out.startswith("::error file=moved.yaml,line=6,")

    def test_problems_of_expectations_are_annotations_too(self, checkout: Path) -> None:
        link = "https://onnx.ai/onnx/operators/onnx__Round.html"
        (checkout / "known.yaml").write_text(
            f'- {{match: "Round@22:X=float32[9]", expect: mismatch, difference: {{kind: value}}, reason: x, link: "{link}"}}\n'
        )
        harness("run", "Round.yaml", "-t", "fake", "--expectations", "known.yaml", "-o", "run")
        assert harness("annotate", "run").out == (
            "::error title=an expectation::known.yaml:1: [0]: matches no case on fake; remove it or correct its query\n"
        )

    def test_no_run_is_one_line(self, checkout: Path) -> None:
        ended = harness("annotate", "nowhere")
        assert ended.code == 2
        assert ended.err.count("\n") == 1


@pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("bash") is None,
    reason="the stand-in for Python is a shell script",
)
class TestScript:
    """The script with a Python that makes its environment of nothing: the harness in it is this one."""

    def run(self, checkout: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
        tools = checkout / "tools"
        tools.mkdir(exist_ok=True)
        start = f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n'
        make = f'mkdir -p "$3/bin"; printf "#!/bin/sh\\n" >"$3/bin/python"; cat >"$3/bin/harness" <<\'END\'\n{start}END\n'
        (tools / "python").write_text(f'#!/bin/sh\n{make}chmod +x "$3"/bin/*\n', encoding="utf-8")
        (tools / "python").chmod(0o755)
        names = (
            "TARGETS",
            "QUERY",
            "SPECS",
            "EXPECTATIONS",
            "BASELINE",
            "SHARD",
            "MERGE",
            "WINDOWS_RUNTIME",
            "REQUIREMENT",
        )
        output = checkout / "output"
        output.write_text("")
        environment = {
            **dict.fromkeys(names, ""),
            "PATH": f"{tools}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "ACTION": str(ACTION),
            "RUNNER_TEMP": str(checkout / "temp"),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(checkout / "summary.md"),
            **inputs,
        }
        (checkout / "temp").mkdir(exist_ok=True)
        command = ["bash", str(ACTION / "run.sh")]
        ended = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=300
        )
        said = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return ended.returncode, ended.stdout, said

    @pytest.mark.slow
    def test_a_red_run(self, checkout: Path) -> None:
        code, out, said = self.run(
            checkout,
            TARGETS="fake fake,script=script.yaml",
            SPECS="Round.yaml",
            QUERY=f"Round@22:X=float32\n{WRONG}",
        )
        assert (code, said["exit-code"]) == (1, "1")
        assert [line for line in out.splitlines() if line.startswith("::error file=Round.yaml,line=6,")]
        assert "3 unexpected in 14 results: 3 wrong" in (checkout / "summary.md").read_text(encoding="utf-8")
        assert {path.name for path in Path(said["run"]).iterdir()} >= {
            "run.jsonl",
            "report.md",
            "report.html",
            "junit.xml",
        }

    @pytest.mark.slow
    def test_shards_merge_and_an_input_is_no_code(self, checkout: Path) -> None:
        for number in (1, 2):
            code, _, said = self.run(checkout, TARGETS="fake", SPECS="Round.yaml", SHARD=f"{number}/2")
            assert code == 0
            shutil.copytree(said["run"], checkout / "parts" / f"part {number}")
        code, out, said = self.run(checkout, MERGE="parts")
        assert code == 0, out
        assert "Nothing unexpected in 7 results" in out
        code, _, said = self.run(checkout, TARGETS="fake", SPECS="$(touch hacked).yaml")
        assert (code, said) == (2, {"exit-code": "2"})
        assert not (checkout / "hacked").exists()

    @pytest.mark.slow
    def test_an_input_is_no_pattern_and_no_option(self, checkout: Path) -> None:
        (checkout / "fake").touch()
        (checkout / "fakf").touch()
        code, out, said = self.run(checkout, TARGETS="fak?", SPECS="Round.yaml")
        assert (code, said) == (2, {"exit-code": "2"}), out
        (checkout / "-h").write_bytes((checkout / "Round.yaml").read_bytes())
        (checkout / "Round.yaml").unlink()
        code, out, said = self.run(checkout, TARGETS="fake", SPECS="-h")
        assert (code, said["exit-code"]) == (0, "0"), out
        assert "run" in said

    def test_wrong_usage_keeps_its_exit_code(self, checkout: Path) -> None:
        assert self.run(checkout, TARGETS="gpu", SPECS="Round.yaml")[0] == 2
