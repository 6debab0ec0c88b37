"""A run as every renderer shows it: counted once, from one reading of its run file.

Renderers receive a `Report`. It computes what several of them show on first use and keeps it, so that
terminal, Markdown and page always agree about a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from harness.model.verdict import DEFECTS, Reading
from harness.results.defects import DefectLine, defects
from harness.results.explain.in_common import NOTHING, InCommon
from harness.results.guidance import Step, next_steps
from harness.results.history.runs import Trend
from harness.results.level_table import LevelRow, OverviewRow, level_table, overview, target_levels
from harness.results.matrix import Matrix, matrices
from harness.results.reading_rows import ReadingRow, reading_rows
from harness.results.summary import Summary, summarize
from harness.results.support import LOWERS_TO_DIRECTML, Support, TypeKernels, kernels_by_type, support
from harness.results.tables import Tables


class Report:
    """The counts of a run (`tables`), what its unexpected failures have in `common`, and the `trends` of its targets over
    other runs."""

    def __init__(self, tables: Tables, common: InCommon = NOTHING, trends: Sequence[Trend] = ()) -> None:
        self.tables = tables
        self.common = common
        self.trends = trends

    @cached_property
    def summary(self) -> Summary:
        """The verdict, with the remarks that a reader needs before trusting it."""
        return summarize(self.tables)

    @cached_property
    def readings(self) -> list[ReadingRow]:
        """The six readings with their numbers, those that occur."""
        return reading_rows(self.tables)

    @cached_property
    def defects(self) -> list[DefectLine]:
        """A line for each defect, the worst first."""
        return defects(self.tables)

    @property
    def lowers_to_directml(self) -> bool:
        """Whether a target ran for whose cases DirectML's feature levels say something."""
        infos = self.tables.header.targets.values()
        return any(info.provider in LOWERS_TO_DIRECTML and not info.unavailable for info in infos)

    @cached_property
    def kernels(self) -> list[TypeKernels]:
        """A row for each element type: for how many operators each target has a kernel."""
        return kernels_by_type(self.tables)

    @cached_property
    def known(self) -> int:
        """How many results do not do what ONNX defines, and are known to."""
        total = self.tables.tally()
        return sum(total.known(reading) for reading in (*DEFECTS, Reading.NOT_SUPPORTED))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What to do next."""
        return next_steps(self.tables)

    @cached_property
    def overview(self) -> list[OverviewRow]:
        """A row for each operator, those with unexpected results first."""
        return overview(self.tables)

    @cached_property
    def levels(self) -> list[LevelRow]:
        """A row for each operator and target: valid cases by the feature level that first allows them."""
        return level_table(self.tables)

    @cached_property
    def target_levels(self) -> list[LevelRow]:
        """A row for each target: the same over all operators."""
        return target_levels(self.levels)

    @cached_property
    def support(self) -> list[Support]:
        """Documented, registered and measured support side by side."""
        return support(self.tables)

    @cached_property
    def matrices(self) -> list[Matrix]:
        """Of each operator and target element type × rank, and further matrices where other inputs tell more."""
        return matrices(self.tables)
