"""A run on a cluster has the results of one on this machine, whatever becomes of the nodes."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from harness.model.errors import HarnessFault
from harness.run.cluster import coordinator, identity, node
from harness.run.cluster.identity import Identity
from harness.run.cluster.messages import BlockTask, NodeLacks
from harness.run.processes.process import Fault
from harness.specs import selection
from harness.specs.selection import CaseBlock
from tests.cluster.inprocess import InProcessCluster, put_in_place
from tests.cluster.lacking import need_dask
from tests.running import ROUND, complaint, harness, lines_of, results_of, script_of, without_time
from tests.sampled import one_of

QUERIES = ("-k", "Round@22:sweep=empty", "-k", "Round@22:case=*_input")
"""A few dozen cases, some of them not valid."""
REMOTE = ("--cluster", "tcp://inprocess:1")


@pytest.fixture(autouse=True)
def _dask() -> None:
    need_dask()


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_LEAST_CASES", 2)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on this machine, of a target whose answers differ."""
    folder = tmp_path_factory.mktemp("alone")
    script_of(folder, [("Round@22:X=float16[0]", "shape"), ("Round@22:X=float32", "reject")])
    assert harness("run", *options(folder), "-o", folder / "run").code == 1
    return folder


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> InProcessCluster:
    """Three nodes that live."""
    return put_in_place(monkeypatch, InProcessCluster())


def options(folder: Path) -> list[str | Path]:
    return [ROUND, "-t", f"fake,script={folder / 'script.yaml'}", *QUERIES, "-j", "1"]


def same(one: Path, other: Path) -> None:
    """Hold all that two runs found against each other, but for times and names."""
    assert without_time(results_of(one)) == without_time(results_of(other))
    ends = [
        {key: value for key, value in lines_of(folder)[-1].items() if key not in ("seconds", "nodes")}
        for folder in (one, other)
    ]
    assert ends[0] == ends[1]
    heads = [
        {k: v for k, v in lines_of(folder)[0].items() if k not in ("run_id", "command", "nodes")}
        for folder in (one, other)
    ]
    assert heads[0] == heads[1]
    assert {path.name for path in (one / "artifacts").iterdir()} == {
        path.name for path in (other / "artifacts").iterdir()
    }


def test_as_on_one_machine(alone: Path, tmp_path: Path, cluster: InProcessCluster) -> None:
    ended = harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o")
    assert ended.code == 1, ended.err
    assert "cluster tcp://inprocess:1: 3 nodes" in ended.err
    same(alone / "run", tmp_path / "o")
    assert {address for address, _ in cluster.tasks} == set(cluster.there)
    (head, *_) = lines_of(tmp_path / "o")
    assert [each["host"] for each in head["nodes"]]
    assert head["nodes"][0]["targets"].keys() == head["targets"].keys()


@pytest.mark.parametrize("seed", one_of(3, range(5)))
def test_nodes_that_die_cost_nothing(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """At random, and often enough that blocks die twice; no case dies alone."""
    chance = random.Random(seed)
    died = Counter[int]()

    def dies(_node: str, task: BlockTask) -> bool:
        died[task.number] += died[task.number] < 2 and chance.random() < 0.3
        return died.total() > cluster.deaths

    cluster = put_in_place(monkeypatch, InProcessCluster(dies=dies))
    assert harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o").code == 1
    assert cluster.deaths >= 3
    same(alone / "run", tmp_path / "o")


def test_a_case_that_ends_nodes_is_found(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes die with its block and two with the case alone; every other case has its result."""
    bad = 1

    def dies(_node: str, task: BlockTask) -> bool:
        return task.number == 1 and (task.positions is None or bad in task.positions)

    cluster = put_in_place(monkeypatch, InProcessCluster(dies=dies))
    assert harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o").code == 1
    assert cluster.deaths == 4
    found, wanted = results_of(tmp_path / "o"), results_of(alone / "run")
    assert found.keys() == wanted.keys()
    (ended,) = (
        each for each in found.values() if each["error"] and each["error"].get("class") == "NodeEnded"
    )
    assert (ended["outcome"], ended["verdict"]) == ("crash", "regression")
    del found[ended["case"]], wanted[ended["case"]]
    assert without_time(found) == without_time(wanted)


def test_a_node_whose_target_goes_away(alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks run on the others."""
    broken = "tcp://node:1"
    cluster = put_in_place(
        monkeypatch,
        InProcessCluster(instead=lambda address, _: NodeLacks("it broke") if address == broken else None),
    )
    ended = harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o")
    assert ended.code == 1
    assert "no longer: it broke" in ended.err
    assert sum(address == broken for address, _ in cluster.tasks) <= 2
    same(alone / "run", tmp_path / "o")


def test_a_target_that_no_node_has_any_longer(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on one machine the run ends with what there is, and can be continued: here, without the cluster."""
    lost = iter(range(100))
    put_in_place(
        monkeypatch,
        InProcessCluster(1, instead=lambda *_: NodeLacks("it broke") if next(lost) > 2 else None),
    )
    ended = harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o")
    assert ended.code in (1, 3)
    assert 0 < len(results_of(tmp_path / "o")) < len(results_of(alone / "run"))
    assert lines_of(tmp_path / "o")[-1]["problems"]
    assert harness("run", *options(alone), "--resume", "-o", tmp_path / "o").code == 1
    same(alone / "run", tmp_path / "o")


def test_no_node_is_left(alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "_PATIENCE_SECONDS", 0.05)
    left = iter(range(100))
    put_in_place(monkeypatch, InProcessCluster(dies=lambda *_: next(left) > 3, comes_back=False))
    ended = harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o")
    assert ended.code == 3
    assert "no node of tcp://inprocess:1 is left" in ended.err
    assert "continue with: harness run --resume" in ended.err
    written = len(results_of(tmp_path / "o"))
    assert written > 0
    cluster = put_in_place(monkeypatch, InProcessCluster())
    assert harness("run", *options(alone), *REMOTE, "--resume", "-o", tmp_path / "o").code == 1
    same(alone / "run", tmp_path / "o")
    assert sum(len(task.positions or range(10_000)) for _, task in cluster.tasks) > 0


def test_a_local_run_goes_on_with_a_cluster(alone: Path, tmp_path: Path, cluster: InProcessCluster) -> None:
    """What is there is not run again, whatever the blocks."""
    lines = (alone / "run" / "run.jsonl").read_bytes().splitlines(keepends=True)
    kept = [lines[0], *lines[1:-1:2]]
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "run.jsonl").write_bytes(b"".join(kept))
    assert harness("run", *options(alone), *REMOTE, "--resume", "-o", tmp_path / "o").code == 1
    assert without_time(results_of(tmp_path / "o")) == without_time(results_of(alone / "run"))
    assert lines_of(tmp_path / "o")[0]["nodes"]
    assert any(task.positions is not None for _, task in cluster.tasks)
    assert (tmp_path / "o" / "run.jsonl").read_bytes().splitlines(keepends=True)[1 : len(kept)] == kept[1:]


def test_an_interruption_keeps_blocks(alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in mid run; it goes on without the cluster."""
    asked = iter(range(100))

    def interrupted(_node: str, _task: BlockTask) -> bool:
        if next(asked) == 8:
            raise KeyboardInterrupt
        return False

    put_in_place(monkeypatch, InProcessCluster(dies=interrupted))
    ended = harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o")
    assert ended.code == 130
    assert "interrupted; what was finished is kept" in ended.err
    assert 0 < len(results_of(tmp_path / "o")) < len(results_of(alone / "run"))
    assert not node._RUNS
    assert harness("run", *options(alone), "--resume", "-o", tmp_path / "o").code == 1
    assert without_time(results_of(tmp_path / "o")) == without_time(results_of(alone / "run"))


def test_another_harness_on_a_node(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: InProcessCluster
) -> None:
    mine = identity.identity()
    monkeypatch.setattr(node, "identity", lambda: Identity(mine.harness, mine.code, "1.2.3", mine.numpy))
    ended = harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o")
    assert ended.code == 2
    (_, line) = ended.err.splitlines()
    assert line == (
        f"harness: node tcp://node:1: it has onnx 1.2.3, and {mine.onnx} started the run: "
        "install the same versions on every node, for instance those of .ci/requirements.lock"
    )
    assert not (tmp_path / "o").exists()


def test_another_plan_on_a_node(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: InProcessCluster
) -> None:
    """The digest of a block shows it before anything of it runs."""
    whole = CaseBlock.digest
    told: list[str] = []

    def digest(block: CaseBlock) -> str:
        told.append(whole(block))
        return told[-1] if len(told) < 10 else "another"

    monkeypatch.setattr(CaseBlock, "digest", digest)
    ended = harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o")
    assert ended.code == 5
    assert "plans other cases than the first process" in ended.err


def test_a_fault_on_a_node_ends_the_run(alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_place(monkeypatch, InProcessCluster(instead=lambda *_: Fault(HarnessFault("no space"))))
    ended = harness("run", *options(alone), *REMOTE, "-o", tmp_path / "o")
    assert ended.code == 5
    assert "no space; what was finished is kept" in ended.err


@pytest.mark.parametrize("address", ["here", "local", "local:0", "local:257", "tcp://host", "http://host:80"])
def test_what_is_no_address(tmp_path: Path, address: str) -> None:
    ended = harness("run", ROUND, "-t", "fake", "--cluster", address, "-o", tmp_path / "o")
    assert ended.code == 2
    assert complaint(ended).startswith(
        f"--cluster {address}: write tls:// or tcp://HOST:PORT of a Dask scheduler, or"
    )


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.cluster.scheduler.find_spec", lambda _: None)
    ended = harness("run", ROUND, "-t", "fake", "--cluster", "local:2", "-o", tmp_path / "o")
    assert ended.code == 2
    assert "python -m pip install 'onnxruntime-conformance-harness[cluster]'" in complaint(ended)
