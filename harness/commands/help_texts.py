"""Help texts of the command line: a one-line summary of each command for `harness --help`, and the examples
at the end of each command's own help; written for 80 columns."""

from __future__ import annotations

import click

IN_ONE_LINE = {
    "annotate": "Print unexpected results of RUN as annotations for GitHub.",
    "bisect": "Find the release that changed what CASE does.",
    "check": "Validate specs and expectations; report all errors at once.",
    "compare": "Show what changed between the runs BASE and HEAD.",
    "compile": "Write the graphs of cases to generated_models/.",
    "coverage": "Count the interactions of factors that cases show.",
    "describe": "Show what a spec can say of OPERATOR.",
    "expect": "Check expectation files, or update them from a run.",
    "explain": "Show what the failures of RUN have in common.",
    "export": "Write cases as folders of ONNX backend tests.",
    "fuzz": "Run random valid calls of an operator; shrink what fails.",
    "history": "Show over many runs since when cases fail, and which flip.",
    "import": "Turn ONNX's own cases, or backend tests, into specs.",
    "list": "List the ids of the cases that a query selects.",
    "merge": "Merge the runs of shards into one run.",
    "model": "Say which nodes of ONNX models are wrong on which target.",
    "query": "Ask any number of runs a question in SQL.",
    "reduce": "Shrink a failing CASE to the smallest that fails alike.",
    "report": "Render RUN as HTML, Markdown, JUnit, CTRF, CSV or Parquet.",
    "repro": "Write a standalone bug report for a failing CASE.",
    "run": "Run specs on targets; write the run file and reports.",
    "runtimes": "List, install or delete other releases of onnxruntime.",
    "setup": "Install what this machine supports; report what it lacks.",
    "site": "Make static pages of many runs, for any file host.",
    "support": "Say what is known of the support for a query.",
    "targets": "Show which targets can run here, and how to get the others.",
    "windows": "Install or remove DirectML for Linux: the Windows runtime.",
}

GROUPS = {
    "Run": ("run", "model", "list", "targets", "merge"),
    "Look at a run": ("report", "support", "compare", "history", "query", "site", "annotate"),
    "Triage a failure": ("explain", "reduce", "repro", "bisect", "expect", "fuzz"),
    "Write cases": ("describe", "check", "coverage", "import", "export", "compile"),
    "Install": ("setup", "runtimes", "windows"),
}
"""The commands by what they are for, in the order of `harness --help`."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "describe": ("harness describe Softmax", "harness describe com.microsoft.Gelu --format json"),
    "annotate": ("harness annotate reports/latest", "harness annotate reports/latest specs"),
    "bisect": (
        "harness bisect 'Round@11:case=documented_onnx;X=float32[5]'",
        "harness bisect 'GatherND:sweep=batch_sizes_unequal' --good 1.22.1 --all",
        "harness bisect 'Round@11:sweep=variants' --over directml",
    ),
    "check": ("harness check", "harness check specs/Round.yaml"),
    "compare": (
        "harness compare reports/BASE reports/HEAD",
        "harness compare BASE HEAD --format html -o changes.html",
    ),
    "compile": ("harness compile -k 'Round@22:case=*' -o graphs", "harness compile --check"),
    "coverage": (
        "harness coverage -k Round",
        "harness coverage specs/GatherND.yaml --missing",
        "harness coverage -k GatherElements --strength 3 --thorough --json",
    ),
    "explain": ("harness explain reports/latest", "harness explain HEAD --against BASE"),
    "export": (
        "harness export -k 'Gather@13:case=*' exported",
        "harness export -k 'Conv:sweep=windows' -k Round exported --limit 200",
    ),
    "fuzz": (
        "harness fuzz Conv --seconds 300",
        "harness fuzz Resize -t dml --seconds 28800 --seed 7 -o night",
    ),
    "history": (
        "harness history reports",
        "harness history reports --by-release -k GatherND",
        "harness history reports --flips",
    ),
    "import": (
        "harness import onnx",
        "harness import onnx Gather Conv -o specs/onnx",
        "harness import backend/test/data/node -o theirs",
    ),
    "list": (
        "harness list -k Round --count",
        "harness list -k 'GatherElements@13:data=float16;axis=-1'",
        "harness list specs/Round.yaml --json",
    ),
    "merge": ("harness merge part1 part2 -o whole",),
    "model": (
        "harness model MODEL.onnx -t cpu",
        "harness model MODEL.onnx -t dml -t cpu@ort-1.27.0 --dim batch=2",
        "harness model A.onnx B.onnx --cases ours",
    ),
    "query": (
        "harness query 'SELECT reading, count(*) FROM results GROUP BY ALL' reports",
        "harness query \"FROM results WHERE reading = 'wrong'\" RUN --format csv",
    ),
    "reduce": (
        "harness reduce 'GatherElements@13:case=axis_far_above' -t dml -o small.yaml",
        "harness reduce CASE --run reports/latest",
    ),
    "report": (
        "harness report reports/latest --format junit -o junit.xml",
        "harness report reports/latest --format markdown",
    ),
    "repro": (
        "harness repro reports/latest CASE -o bug --reduce",
        "harness repro --case small.yaml -t dml -o bug",
    ),
    "run": (
        "harness run",
        "harness run -t cpu -k Round",
        "harness run -t dml -t cpu@ort-1.22.1 -k 'GatherND@13:data=float16'",
        "harness run specs/Round.yaml --baseline reports/BASE -o reports/HEAD",
    ),
    "setup": ("harness setup",),
    "site": ("harness site reports -o public", "harness site nightly/*/run.jsonl.xz -o public"),
    "support": (
        "harness support Conv:X=float16",
        "harness support Resize -t dml@levels",
        "harness support Softmax reports/one reports/two",
    ),
    "targets": ("harness targets",),
}


def dressed(name: str, command: click.Command) -> click.Command:
    """Give a command its line in the list of commands, and its examples."""
    command.short_help = IN_ONE_LINE.get(name)
    if name in EXAMPLES:
        command.epilog = "\b\n" + "\n".join(("Examples:", *(f"  {example}" for example in EXAMPLES[name])))
    return command
