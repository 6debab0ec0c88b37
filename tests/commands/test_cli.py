"""The command line: every exit code, and one clear line for every wrong input."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.commands import cli
from harness.model.errors import TargetUnavailable
from harness.targets.windows import sandbox
from tests.processes import descendants, gone
from tests.running import (
    HARNESS,
    ROUND,
    SPECS,
    complaint,
    harness,
    lines_of,
    raising,
    results_of,
    script_of,
    without_time,
)
from tests.sampled import one_of

FEW = "Round@22:sweep=empty;X=float16"
TARGETS = (
    "allowed: cpu, cpu@ort-VERSION, dml, dml@windows, dml@ort-VERSION, dml@level-N_N, dml@levels, cpu@ssh:HOST, dml@ssh:HOST, "
    "directml, directml@windows, directml@ort-VERSION, directml@level-N_N, directml@levels, "
    "openvino, ggml, webgpu, ggml@VERSION, plugin=PATH, fake, "
    "each with options such as dml,device_id=1"
)
NO_RUNTIME = "the Windows runtime is not installed"
INTERRUPTED = "harness: interrupted; what was finished is kept: continue with: harness run --resume"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


class TestExitCodes:
    def test_0_as_expected(self, folder: Path) -> None:
        ended = harness("run", ROUND, "-t", "cpu", "-k", FEW, "-o", "out")
        assert (ended.code, ended.err) == (0, "")
        found = results_of(folder / "out")
        assert len(found) == 8
        assert {(r["outcome"], r["verdict"], r["placed_on"], r["target"]) for r in found.values()} == {
            ("pass", "expected", "CPUExecutionProvider", "cpu")
        }
        assert "Nothing unexpected in 8 results" in ended.out

    def test_1_unexpected(self, folder: Path) -> None:
        script = script_of(folder, [("Round@22:X=float16[0];shapes=static", "shape")])
        ended = harness("run", ROUND, "-t", f"fake,script={script}", "-k", FEW, "-o", "out")
        assert (ended.code, ended.err) == (1, "")
        assert (
            sorted(r["outcome"] for r in results_of(folder / "out").values()) == ["mismatch"] + ["pass"] * 7
        )

    def test_2_usage(self) -> None:
        assert harness("run", "-t", "gpu").code == 2

    def test_3_unavailable(self, folder: Path) -> None:
        script = script_of(folder, [], startup="exit")
        ended = harness("run", ROUND, "-t", f"fake,script={script}", "-k", FEW, "-o", "out")
        assert ended.code == 3
        found = results_of(folder / "out")
        assert {(r["outcome"], r["verdict"], r["placed_on"]) for r in found.values()} == {
            ("unavailable", "missing", None)
        }
        header, *_, end = lines_of(folder / "out")
        (info,) = header["targets"].values()
        assert info["unavailable"] == "the worker ended before it started a case (exit code 3)"
        assert (end["selected"], end["run"]) == (8, 0)

    def test_3_unproven_placement(self, folder: Path) -> None:
        script = script_of(folder, [("Round", "misplace")])
        ended = harness("run", ROUND, "-t", f"fake,script={script}", "-k", FEW, "-o", "out")
        assert ended.code == 3
        assert {r["outcome"] for r in results_of(folder / "out").values()} == {"not_placed"}

    @pytest.mark.parametrize(("query", "code"), [("Round:X=float32[5]", 1), ("Round:X=float32[4]", 0)])
    def test_1_a_stale_expectation(self, folder: Path, query: str, code: int) -> None:
        """All cases of the spec run, so that an entry which matches none of them is known to be stale."""
        spec = "operator: Round\nopsets: [22]\nlowers_to: {directml: DML_OPERATOR_ELEMENT_WISE_ROUND}\n"
        spec += "sweeps:\n  - {name: one, X: {dtype: [float32], shape: [[4]], values: [random]}}\n"
        (folder / "Round.yaml").write_text(spec)
        known = f'- {{match: "{query}", expect: mismatch, difference: {{kind: value}}, reason: a test, link: "https://example.org/"}}\n'
        (folder / "known.yaml").write_text(known)
        script = script_of(folder, [("Round", "bit")] if code == 0 else [])
        ended = harness(
            "run", "Round.yaml", "-t", f"fake,script={script}", "--expectations", "known.yaml", "-o", "out"
        )
        assert ended.code == code, ended
        assert len(lines_of(folder / "out")[-1]["problems"]) == code

    def test_1_if_anything_else_is_unexpected_too(self, folder: Path) -> None:
        script = script_of(folder, [("Round@22:X=float16[0];shapes=static", "shape"), ("Round", "misplace")])
        assert harness("run", ROUND, "-t", f"fake,script={script}", "-k", FEW, "-o", "out").code == 1

    def test_4_nothing_ran(self) -> None:
        assert harness("run", ROUND, "-t", "fake", "-k", "Round@7").code == 4

    def test_4_fewer_than_the_minimum(self) -> None:
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW, "--min-cases", "9", "-o", "out")
        assert (ended.code, complaint(ended)) == (4, "8 cases are selected, fewer than --min-cases 9")
        assert not Path("out").exists()

    def test_0_at_the_minimum(self) -> None:
        assert harness("run", ROUND, "-t", "fake", "-k", FEW, "--min-cases", "8", "-o", "out").code == 0

    def test_5_fault(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A defect of the harness is never taken for an unexpected result."""
        monkeypatch.setattr("harness.run.job.judge", lambda *_: 1 // 0)
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out")
        assert ended.code == 5
        assert ended.err.splitlines()[-1].startswith("harness: a fault in the harness: ZeroDivisionError")

    def test_130_interrupted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("harness.run.job.judge", raising(KeyboardInterrupt))
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out")
        assert (ended.code, ended.err.strip()) == (130, f"{INTERRUPTED} -o out")

    @pytest.mark.parametrize("command", ["check", "list", "compile"])
    def test_130_interrupted_with_nothing_to_resume(
        self, command: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        importlib.import_module(
            "harness.specs.expectations.expectations"
        )  # it takes the function along, and must not take this one
        monkeypatch.setattr("harness.specs.reading.load.yaml_files", raising(KeyboardInterrupt))
        ended = harness(command, ROUND)
        assert (ended.code, ended.err.strip()) == (130, "harness: interrupted")


class TestBadInput:
    """Each is one line and exit code 2, without a traceback, and before anything runs."""

    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (
                ["-t", "gpu"],
                f"unknown target 'gpu'; {TARGETS}",
            ),
            (
                ["-t", ""],
                f"unknown target ''; {TARGETS}",
            ),
            (
                ["-t", "cpu@"],
                f"unknown target 'cpu@'; did you mean 'cpu'?; {TARGETS}",
            ),
            *(
                (
                    ["-t", f"cpu,threads={n}"],
                    f"target 'cpu,threads={n}': threads is a number from 1 to 256, not '{n}'",
                )
                for n in ("0", "257", "02", "two", "-1", "²")
            ),
            (
                ["-t", "cpu,threads="],
                "target 'cpu,threads=': bad option 'threads='; allowed, each once: threads=…, memory_limit=…, library=…, config.KEY=…",
            ),
            (
                ["-t", "directml,threads=2"],
                "target 'directml,threads=2': bad option 'threads=2'; allowed, each once: device_id=…, dll=…, debug=…",
            ),
            (
                ["-t", "cpu,memory_limit"],
                "target 'cpu,memory_limit': bad option 'memory_limit'; "
                "allowed, each once: threads=…, memory_limit=…, library=…, config.KEY=…",
            ),
            (["-t", "dlm"], f"unknown target 'dlm'; did you mean 'dml'?; {TARGETS}"),
            (["-t", "cpu,dml"], "target 'cpu,dml': give each target an option of its own: -t cpu -t dml"),
            (["-t", "dml@level-5.0"], "no level '5.0'; did you mean 'level-5_0'?"),
            (
                ["-t", "cuda"],
                "target 'cuda' is a provider of another wheel of ONNX Runtime, which is not run here; one in a "
                "shared library runs as it is: -t plugin=PATH",
            ),
            (["-t", "DML"], f"unknown target 'DML'; did you mean 'dml'?; {TARGETS}"),
            (["-t", "cpu@1.22.1"], f"unknown target 'cpu@1.22.1'; did you mean 'cpu@ort-1.22.1'?; {TARGETS}"),
            (
                ["-t", "dml@5_0,device_id=1"],
                f"unknown target 'dml@5_0,device_id=1'; did you mean 'dml@level-5_0,device_id=1'?; {TARGETS}",
            ),
            (["-t", "cpu@windows"], f"unknown target 'cpu@windows'; {TARGETS}"),
            (
                ["-t", "fake,script="],
                "target 'fake,script=': bad option 'script='; allowed, each once: script=…",
            ),
            (
                ["-t", "fake,script=a,script=b"],
                "target 'fake,script=a,script=b': bad option 'script=b'; allowed, each once: script=…",
            ),
            (
                ["-t", "cpu,memory_limit=2G"],
                "target 'cpu,memory_limit=2G': memory_limit is a number of bytes, not '2G'",
            ),
            (
                ["-t", "cpu,memory_limit=²"],
                "target 'cpu,memory_limit=²': memory_limit is a number of bytes, not '²'",
            ),
            (
                ["-t", f"cpu,memory_limit={'9' * 5000}"],
                f"target 'cpu,memory_limit={'9' * 22}…': memory_limit is a number of bytes, not '{'9' * 39}…'",
            ),
            (
                ["-t", "dml,device_id=one"],
                "target 'dml,device_id=one': device_id is the number of a DXGI adapter, not 'one'",
            ),
            (
                ["-t", "dml,graph_capture=yes"],
                "target 'dml,graph_capture=yes': graph_capture is 0 or 1, not 'yes'",
            ),
            (
                ["-t", "fake,script=\udcff"],
                "target 'fake,script=\\udcff': is not text in UTF-8: rename the file",
            ),
            (["-t", "fake,script=nowhere"], "nowhere: cannot read: No such file or directory"),
            (
                ["-k", "Round:axis>=" + "9" * 5000],
                "the query is longer than 4,000 characters: what it should select has a shorter one",
            ),
            (
                ["-k", f"Round:axis>={'9' * 20}"],
                f"bad query 'Round:axis>={'9' * 20}': 'axis>={'9' * 20}' compares with '{'9' * 20}', "
                "which is no integer of at most 19 digits; write for example 'GatherElements@13:data=float16;axis=-1'",
            ),
            (
                ["-k", "Round:X=*1*1*1*1*1*1*1*1*1"],
                "bad query 'Round:X=*1*1*1*1*1*1*1*1*1': 'X=*1*1*1*1*1*1*1*1*1' has more than 8 '*'; "
                "write for example 'GatherElements@13:data=float16;axis=-1'",
            ),
            (["-k", ""], "the query is empty; write for example 'GatherElements@13:data=float16;axis=-1'"),
            (["-k", "  "], "the query is empty; write for example 'GatherElements@13:data=float16;axis=-1'"),
            (["--shard", "0/2"], "--shard 0/2: write I/N with 1 <= I <= N, for example 1/4"),
            (["--shard", "3/2"], "--shard 3/2: write I/N with 1 <= I <= N, for example 1/4"),
            (["--shard", "2"], "--shard 2: write I/N with 1 <= I <= N, for example 1/4"),
            (["--shard", "1/"], "--shard 1/: write I/N with 1 <= I <= N, for example 1/4"),
            (["--shard", "-1/2"], "--shard -1/2: write I/N with 1 <= I <= N, for example 1/4"),
            (["--shard", "²/3"], "--shard ²/3: write I/N with 1 <= I <= N, for example 1/4"),
            (
                ["--shard", f"1/{'9' * 5000}"],
                f"--shard 1/{'9' * 37}…: write I/N with 1 <= I <= N, for example 1/4",
            ),
            (["--resume"], "reports/latest: there is no run to resume; name its folder with -o"),
            (
                ["--resume", "-o", "nowhere"],
                "nowhere/run.jsonl: there is no run to resume; leave --resume out to start one",
            ),
            (["--baseline", "nowhere"], "nowhere: cannot be read: No such file or directory"),
            (["nowhere.yaml"], "nowhere.yaml: cannot read: No such file or directory"),
            (
                ["GatherND"],
                "GatherND: no such file; SPEC is a file or folder, `-k GatherND` chooses the cases of an operator",
            ),
        ],
    )
    def test_run(self, arguments: list[str], line: str) -> None:
        defaults = [] if "-t" in arguments else ["-t", "fake"]
        ended = harness("run", *defaults, *arguments, *([] if "nowhere.yaml" in arguments else [ROUND]))
        assert (ended.code, complaint(ended), ended.out) == (2, line, "")
        assert not list(Path().iterdir())

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--jobs", "0"],
            ["--timeout", "0"],
            ["--timeout", "soon"],
            ["--timeout", "nan"],
            ["--timeout", "inf"],
            ["--timeout", "1e308"],
            ["--select", "some"],
            ["--min-cases", "0"],
            ["--seed", "-1"],
            ["--frobnicate"],
        ],
    )
    def test_options_that_click_refuses(self, arguments: list[str]) -> None:
        ended = harness("run", *arguments)
        assert ended.code == 2
        assert ended.err.splitlines()[-1].startswith("Error: ")
        assert "Traceback" not in ended.err

    def test_unknown_command(self) -> None:
        ended = harness("rnu")
        assert ended.code == 2
        assert "No such command 'rnu'" in ended.err

    @pytest.mark.parametrize(
        ("query", "hint"),
        [
            ("Rounds", "no operator 'Rounds'; did you mean 'Round'?; known: Round"),
            ("Round@22:dtype=float16", "no case has the key 'dtype'"),
            (
                "Round@22:X=float16[5,5,5]",
                "no case has all of these terms together; `harness list` shows the ids",
            ),
        ],
    )
    @pytest.mark.parametrize("beside", [(), ("-k", "Round@22"), ("-k", "case=*")])
    @pytest.mark.parametrize("command", ["run", "list", "compile"])
    def test_a_query_that_matches_nothing_says_why(
        self, command: str, beside: tuple[str, ...], query: str, hint: str
    ) -> None:
        target = ["-t", "fake"] if command == "run" else []
        ended = harness(command, ROUND, *beside, "-k", query, *target)
        assert ended.code == 4
        assert complaint(ended).startswith(f"no case matches {query}; {hint}")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
    def test_output_that_no_file_can_replace(self, folder: Path) -> None:
        """Root could replace /dev/null with a file."""
        os.mkfifo("pipe")
        reader = os.open("pipe", os.O_RDWR)
        try:
            assert harness("describe", "Round", "-o", "pipe").code == 0
            assert os.read(reader, 1 << 16).startswith(b"Round")
        finally:
            os.close(reader)
        assert stat.S_ISFIFO(os.stat("pipe").st_mode)

    def test_output_behind_a_link(self, folder: Path) -> None:
        (folder / "pages").mkdir()
        (folder / "link").symlink_to(Path("pages", "page"))
        assert harness("describe", "Round", "-o", "link").code == 0
        assert (folder / "link").is_symlink()
        assert (folder / "pages" / "page").read_text().startswith("Round")

    def test_output_that_would_replace_a_run(self, folder: Path) -> None:
        harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out")
        before = (folder / "out" / "run.jsonl").read_bytes()
        ended = harness("report", "out", "--format", "csv", "-o", "out/run.jsonl")
        assert (ended.code, complaint(ended)) == (
            2,
            "out/run.jsonl: holds a run, whose results would be lost; name another file with -o",
        )
        assert (folder / "out" / "run.jsonl").read_bytes() == before

    @pytest.mark.parametrize("command", [("run", "-t", "fake"), ("compile",)])
    def test_output_is_a_file(self, folder: Path, command: tuple[str, ...]) -> None:
        (folder / "out").touch()
        ended = harness(*command, ROUND, "-k", FEW, "-o", "out")
        assert (ended.code, complaint(ended)) == (2, "out: is a file; -o names a folder")

    def test_output_below_a_file(self, folder: Path) -> None:
        (folder / "out").touch()
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out/run")
        assert (ended.code, complaint(ended)) == (
            2,
            "out/run: cannot be made: Not a directory; choose another folder with -o",
        )

    def test_default_reports_folder_cannot_be_made(self, folder: Path) -> None:
        (folder / "reports").touch()
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW)
        assert ended.code == 2
        assert complaint(ended).endswith("cannot be made: Not a directory; choose another folder with -o")

    def test_run_file_cannot_be_written(self, folder: Path) -> None:
        """As in a read-only folder; a folder in the file's place holds for root too."""
        (folder / "out" / "run.jsonl").mkdir(parents=True)
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out")
        assert (ended.code, complaint(ended)) == (2, "out/run.jsonl: cannot be written: Is a directory")

    @pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes into read-only folders"
    )
    def test_read_only_folder(self, folder: Path) -> None:
        (folder / "out").mkdir(mode=0o500)
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out")
        assert (ended.code, complaint(ended)) == (2, "out/run.jsonl: cannot be written: Permission denied")

    def test_a_report_that_cannot_be_written_costs_no_result(self, folder: Path) -> None:
        (folder / "out" / "report.md").mkdir(parents=True)
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out")
        assert (ended.code, complaint(ended)) == (0, "out/report.md: cannot be written: Is a directory")
        assert len(results_of(folder / "out")) == 8

    def test_artifacts_that_cannot_be_written(self, folder: Path) -> None:
        (folder / "out").mkdir()
        (folder / "out" / "artifacts").touch()
        script = script_of(folder, [("Round", "shape")])
        ended = harness("run", ROUND, "-t", f"fake,script={script}", "-k", FEW, "-o", "out")
        assert ended.code == 5
        assert complaint(ended).startswith("out/artifacts")
        assert lines_of(folder / "out")[0]["type"] == "run"

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes a device")
    def test_full_disk(self, folder: Path) -> None:
        (folder / "out").mkdir()
        os.mknod(folder / "out" / "run.jsonl", stat.S_IFCHR | 0o600, os.stat("/dev/full").st_rdev)
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out")
        assert (ended.code, complaint(ended)) == (
            5,
            "out/run.jsonl: No space left on device; free some space",
        )

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            (
                "rules: [{match: Round, do: explode}]\n",
                "rules[0]: a rule has 'match' or 'where' or both, and 'do'",
            ),
            ("rules: [{do: reject}]\n", "rules[0]: a rule has 'match' or 'where' or both, and 'do'"),
            (
                "rules: [{where: rank, do: reject}]\n",
                "rules[0]: bad term 'rank': write column=value, with =, !=, >= or <=",
            ),
            ("startup: slowly\n", "a script has 'rules' and 'startup' (ok, exit, garbage, hang)"),
            ("startup: [ok]\n", "a script has 'rules' and 'startup' (ok, exit, garbage, hang)"),
            ("rules: 5\n", "rules: should be a list, not 5"),
            ("rules: null\n", "rules: should be a list, not null"),
            ("rules: {match: Round}\n", "rules: should be a list, not a mapping"),
            ("{}\nmore: 1\n", "not YAML: "),
        ],
    )
    def test_a_bad_script(self, folder: Path, text: str, line: str) -> None:
        (folder / "script.yaml").write_text(text)
        for command in (
            ["run", ROUND, "-k", FEW, "-o", "out"],
            ["reduce", "Round@22:case=documented_half;X=float16[6]", "--spec", ROUND],
        ):
            ended = harness(*command, "-t", "fake,script=script.yaml")
            assert ended.code == 2
            assert complaint(ended).startswith(("script.yaml:1: " + line, "script.yaml:2: " + line))
        assert not (folder / "out").exists()

    def test_an_edited_graph_file(self, folder: Path) -> None:
        assert harness("compile", ROUND, "-k", FEW).code == 0
        (path, *_) = sorted((folder / "generated_models").glob("*/*.onnx"))
        path.write_bytes(path.read_bytes() + b"\0")
        ended = harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out")
        assert ended.code == 2
        assert complaint(ended).startswith(
            f"generated_models/Round/{path.name}: was edited: its content has the hash "
        )
        assert not (folder / "out").exists()

    @pytest.mark.parametrize("command", [["report", "--format", "markdown"], ["merge", "-o", "merged"]])
    def test_commands_that_read_a_missing_run(self, command: list[str]) -> None:
        ended = harness(*command, "nowhere")
        assert (ended.code, complaint(ended)) == (2, "nowhere: cannot be read: No such file or directory")

    @pytest.mark.slow
    @pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
    def test_an_output_that_has_not_all_characters(self, folder: Path, encoding: str) -> None:
        """As on Windows where the output goes to a file."""
        command = [*HARNESS, "run", str(ROUND), "-t", "fake", "-k", FEW, "-o", "out"]
        ended = subprocess.run(
            command,
            env=os.environ | {"PYTHONIOENCODING": encoding},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert ended.stdout.startswith(b"OK Nothing unexpected in 8 results")

    @pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are text here")
    def test_names_that_are_no_text(self, folder: Path) -> None:
        command = [*HARNESS, "run", str(ROUND), "-t", "fake", "-k", FEW, "-o", b"out\xff"]
        ended = subprocess.run(command, capture_output=True, timeout=120, check=False)
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert b"out\\udcff/run.jsonl" in ended.stdout
        assert lines_of(Path(os.fsdecode(b"out\xff")))[0]["command"].endswith("'out\\udcff'")

    def test_one_of_a_thing(self, folder: Path) -> None:
        (folder / "one.yaml").write_text(
            "- {match: 'Round@22:case=documented_onnx', expect: crash, reason: r, link: 'https://example.org/'}\n"
        )
        assert re.fullmatch(
            r"1 spec with [\d,]+ cases, 1 expectation: ok\n",
            harness("check", ROUND, "--expectations", "one.yaml").out,
        )
        assert harness("expect", "lint", "one.yaml", "--spec", ROUND).out == "1 expectation: ok\n"
        counted = harness("list", ROUND, "-k", "Round@22:case=documented_onnx", "--count").out
        assert "\n1 combination left out: " in counted


class TestList:
    def test_ids_are_unique_and_select_themselves(self) -> None:
        ids = harness("list", ROUND, "-k", "Round@22").out.splitlines()
        assert len(ids) == len(set(ids)) > 500
        for one in ids[::197]:
            found = harness("list", ROUND, "-k", one).out.splitlines()
            assert one in found
            assert set(found) <= set(ids)

    def test_json_says_what_a_case_is(self) -> None:
        (line,) = harness(
            "list", SPECS / "GatherND.yaml", "--json", "-k", "GatherND@13:case=documented_onnx_5"
        ).out.splitlines()
        described = json.loads(line)
        assert (described["operator"], described["opset"], described["attributes"]) == (
            "GatherND",
            13,
            {"batch_dims": 1},
        )
        assert [(one["name"], one["dtype"], one["shape"]) for one in described["inputs"]] == [
            ("data", "int32", [2, 2, 2]),
            ("indices", "int64", [2, 1]),
        ]
        assert (described["validity"], described["levels"]) == ("valid", {"directml": "3_0"})

    def test_count_is_the_number_of_lines(self) -> None:
        counted = harness("list", "--count", ROUND).out.splitlines()
        listed = harness("list", ROUND).out.splitlines()
        assert counted[0] == f"{len(listed):,} cases"


def test_targets_without_directml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.targets.launches.runtime.launch", no_windows_runtime)
    ended = harness("targets")
    assert ended.code == 0
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["cpu", "yes"] in [row[:2] for row in rows]
    assert ["dml", "no"] in [row[:2] for row in rows]
    assert NO_RUNTIME in " ".join(ended.out.split())


def test_an_absent_provider_is_unavailable_and_never_run_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.targets.launches.runtime.launch", no_windows_runtime)
    ended = harness("run", ROUND, "-t", "dml", "-t", "cpu", "-k", FEW, "-o", "out")
    assert ended.code == 3
    header = lines_of(folder / "out")[0]
    assert header["targets"]["dml"]["unavailable"] == NO_RUNTIME
    dml, cpu = (results_of(folder / "out", target) for target in ("dml", "cpu"))
    assert {(r["outcome"], r["verdict"], r["placed_on"], r["stage"]) for r in dml.values()} == {
        ("unavailable", "missing", None, None)
    }
    assert {(r["outcome"], r["verdict"]) for r in cpu.values()} == {("pass", "expected")}
    assert dml.keys() == cpu.keys()


def test_without_directml_the_default_targets_say_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "harness.targets.registry.runtime.unavailable", lambda: f"{NO_RUNTIME}: run `harness setup`"
    )
    ended = harness("run", ROUND, "-k", FEW, "-o", "out")
    assert ended.code == 0
    assert complaint(ended) == f"cpu alone, without dml and directml: {NO_RUNTIME}: run `harness setup`"
    header = lines_of(folder / "out")[0]
    assert list(header["targets"]) == ["cpu"]
    why = f"{NO_RUNTIME}: run `harness setup`"
    assert header["targets_left_out"] == {"dml": why, "directml": why}
    for text in (
        ended.out,
        *(path.read_text(encoding="utf-8") for path in sorted((folder / "out").glob("report.*"))),
    ):
        words = " ".join(text.split())
        assert "Nothing unexpected in 8 results, without dml and directml." in words
        assert f"Run without dml and directml, which are not here: {NO_RUNTIME}: run " in words
    assert harness("run", "--resume", "-o", "out").err.splitlines()[0] == ended.err.strip()
    assert harness("run", ROUND, "-k", FEW, "-t", "cpu", "-o", "chosen").err == ""


def test_where_nothing_can_separate_windows_the_reason_has_its_own_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `harness setup` could not install it is not named for."""
    monkeypatch.setenv("PATH", str(folder))
    sandbox.launcher.cache_clear()
    ended = harness("run", ROUND, "-k", FEW, "-o", "out")
    sandbox.launcher.cache_clear()
    assert ended.code == 0
    assert complaint(ended) == f"cpu alone, without dml and directml: {sandbox.remedy()}"
    assert "harness setup" not in ended.err


def no_windows_runtime(*_: object, **__: object) -> None:
    raise TargetUnavailable(NO_RUNTIME)


@pytest.mark.slow
@pytest.mark.parametrize("copied", [False, True])
def test_a_part_of_the_specs_is_judged_as_one(folder: Path, copied: bool) -> None:
    """What is known of the other operators matches nothing here, and a copy of a spec may call its sweeps as
    it likes."""
    spec = ROUND
    if copied:
        spec = folder / "Round.yaml"
        spec.write_text(
            ROUND.read_text(encoding="utf-8").replace("- name: sizes", "- name: mine"), encoding="utf-8"
        )
    ended = harness("run", spec, "-t", "cpu", "-o", "out")
    assert ended.code == 0, ended.out
    assert lines_of(folder / "out")[-1]["problems"] == []
    mine = harness("list", "-k", "sweep=mine", spec)
    assert (mine.code, len(mine.out.splitlines()) > 100) == ((0, True) if copied else (4, False))


def test_one_s_own_expectations_are_judged_by_one_s_own_specs(folder: Path) -> None:
    entry = "- {match: %s, expect: mismatch, difference: {kind: value}, reason: a test, link: 'https://example.org/'}\n"
    (folder / "mine.yaml").write_text(
        "".join(entry % f"'{query}'" for query in ("Round:sweep=none", "GatherND:sweep=none", "Rond"))
    )
    problems = ["mine.yaml:1: [0]: matches no case", "mine.yaml:3: [2]: matches no case"]
    ended = harness("check", ROUND, "--expectations", "mine.yaml")
    assert (ended.code, ended.err.splitlines()) == (
        1,
        [f"{line}; remove it or correct its query" for line in problems],
    )
    assert harness("run", ROUND, "-t", "fake", "--expectations", "mine.yaml", "-o", "out").code == 1
    assert lines_of(folder / "out")[-1]["problems"] == [
        f"{line} on fake; remove it or correct its query" for line in problems
    ]


@pytest.mark.slow
def test_check() -> None:
    """Of some specs: `.ci/run` and `.ci/slow` check all."""
    ended = harness("check", SPECS / "Where.yaml", SPECS / "graphs", SPECS / "ai.onnx.ml")
    assert (ended.code, ended.err) == (0, "")
    count = 1 + sum(len(list((SPECS / folder).glob("*.yaml"))) for folder in ("graphs", "ai.onnx.ml"))
    assert ended.out.startswith(f"{count} specs with ")


@pytest.mark.parametrize(
    ("content", "why"), [(b"\xff\xfe", "'utf-8' codec can't decode"), (None, "Is a directory")]
)
def test_a_damaged_manifest_is_named(tmp_path: Path, content: bytes | None, why: str) -> None:
    manifest = tmp_path / "manifest.txt"
    if content is None:
        manifest.mkdir()
    else:
        manifest.write_bytes(content)
    ended = harness("compile", ROUND, "--check", "-o", tmp_path)
    assert ended.code == 2
    assert complaint(ended).startswith(f"{manifest}: cannot be read: {why}")
    assert complaint(ended).endswith("; run: harness compile")


def test_default_folder_and_latest(folder: Path) -> None:
    assert harness("run", ROUND, "-t", "fake", "-k", FEW).code == 0
    latest = (folder / "reports" / "latest").resolve()
    assert latest.parent == folder / "reports"
    assert len(results_of(latest)) == 8
    assert {path.name for path in latest.iterdir()} == {"run.jsonl", "report.md", "report.html"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another error on Windows")
@pytest.mark.parametrize(("startup", "code"), [("ok", 0), ("exit", 3)])
def test_a_reader_that_leaves_changes_neither_reports_nor_exit_code(
    folder: Path, startup: str, code: int
) -> None:
    """As `harness run | head -1` does, with pipefail."""
    script = script_of(folder, [], startup)
    reading, writing = os.pipe()
    os.close(reading)
    command = [*HARNESS, "run", str(ROUND), "-t", f"fake,script={script}", "-k", FEW, "-o", "out"]
    try:
        ended = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    finally:
        os.close(writing)
    said = [
        line for line in ended.stderr.splitlines() if not re.search(r": [0-9]+ %, ", line)
    ]  # progress, if the run was slow
    assert (ended.returncode, said) == (code, [])
    assert {"run.jsonl", "report.md", "report.html"} <= {path.name for path in (folder / "out").iterdir()}


@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another error on Windows")
@pytest.mark.parametrize(
    "command",
    one_of(
        3,
        [
            "list -k GatherElements",
            "list --json -k GatherElements",
            "history RUN",
            "history RUN --format json",
            "compare RUN RUN",
            "targets",
            "report RUN --format junit",
        ],
    ),
)
def test_a_reader_that_leaves_is_no_unexpected_result(folder: Path, command: str) -> None:
    """As `harness list | head` does: 141, as of a program that SIGPIPE ends, and not 1."""
    assert harness("run", ROUND, "-t", "fake", "-k", FEW, "-o", "out").code == 0
    reading, writing = os.pipe()
    os.close(reading)
    words = [*HARNESS, *("out" if word == "RUN" else word for word in command.split())]
    try:
        ended = subprocess.run(
            words, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", one_of(3, [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
def test_signals_leave_no_process_and_a_run_to_resume(folder: Path, number: signal.Signals) -> None:
    """The same results as those of a run that nothing interrupted."""
    query = "GatherND@13:sweep=outer;data=float16"
    spec = SPECS / "GatherND.yaml"
    script = script_of(
        folder, [("GatherND@13:data=float16[2,3,4];indices=int64[4,2];values=boundary", "hang")]
    )
    options = ["run", str(spec), "-t", f"fake,script={script}", "-k", query, "-j", "2", "--timeout", "60"]
    command = [*HARNESS, *options, "-o", "out"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        end = time.monotonic() + 300  # of a slow machine, where the first run of an operator plans it
        run = folder / "out" / "run.jsonl"
        while not run.exists() or run.read_bytes().count(b"\n") < 20:
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.02)
        workers = descendants(process.pid)
        assert workers
        process.send_signal(number)
        assert process.wait(60) == (-9 if number is signal.SIGKILL else 130)
        said = process.stderr.read()
    assert gone(workers)
    if number is not signal.SIGKILL:
        assert (
            said.strip().rpartition("\n")[2] == f"{INTERRUPTED} -t fake,script={script} -o out"
        )  # below lines of progress, if the run was slow
    before = run.read_bytes()
    assert before.count(b'"type":"end"') == 0
    script_of(folder, [])
    resumed = harness(*options, "-o", "out", "--resume")
    assert resumed.code == 0
    after = run.read_bytes()
    whole = before[: before.rindex(b"\n") + 1]
    assert after.startswith(whole)
    assert harness(*options, "-o", "whole").code == 0
    assert without_time(results_of(folder / "out")) == without_time(results_of(folder / "whole"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-o", ""),
        ("run", "--baseline", ""),
        ("run", ""),
        ("check", "--expectations", ""),
        ("compile", "-o", ""),
        ("merge", "run", "-o", ""),
        ("merge", "", "-o", "out"),
        ("report", ""),
        ("report", "run", "--format", "markdown", "-o", ""),
        ("compare", "", "run"),
        ("compare", "run", "run", "-o", ""),
        ("explain", "run", "--against", ""),
        ("history", ""),
        ("expect", "update", "run", ""),
        ("repro", "run", "case", "-o", ""),
        ("reduce", "case", "-o", ""),
    ],
)
def test_an_empty_path_is_no_folder(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an unset variable of a script leaves."""
    monkeypatch.chdir(tmp_path)
    ended = harness(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].endswith("the path is empty; write . for the current folder")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments", [("run", "-o"), ("explain",), ("compare", "run"), ("run", "--expectations")]
)
def test_a_url_is_no_folder(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = harness(*arguments, "s3://bucket/run")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].endswith(
        "s3://bucket/run is a URL, and this takes a path; copy the files to or from there"
    )
    assert not list(tmp_path.iterdir())


def test_an_error_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    ended = harness("report", str(tmp_path / "no\x1b[2J\u202erun"), "--format", "markdown")
    assert ended.code == 2
    assert complaint(ended).endswith("no\\x1b[2J\\u202erun: cannot be read: No such file or directory")


def test_a_module_that_was_cut_off_is_no_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk can leave a compiled module that ends early; click takes the error for Ctrl-D."""

    monkeypatch.setattr(cli._Commands, "get_command", raising(EOFError("marshal data too short")))
    ended = harness("list")
    assert ended.code == 5
    assert ended.err.endswith("harness: a fault in the harness: marshal data too short\n")
