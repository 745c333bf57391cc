"""`NumberedMixture`: the rows of a mixture with their numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate
from operator import add
from typing import cast

from arrowdl import _core
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._skip.numbered import NumberedSource
from arrowdl.loader._skip.numbers import Place
from arrowdl.loader._skip.stand_ins import Faults
from arrowdl.loader._skipped import MissingRows


def number_mixture(
    mixture: MixedSource,
    faults: Sequence[Faults] = (),  # of each of its sources
) -> tuple[MixedSource, NumberedMixture]:
    """Return the rows of a mixture with their numbers as the column `NUMBER`."""
    faults = faults or [Faults() for _ in mixture.members]
    firsts = list(accumulate((member.source.num_rows for member in mixture.members), initial=0))
    numbered = mixture.with_members(
        [
            replace(member, source=NumberedSource(member.source, first, member_faults))
            for member, first, member_faults in zip(mixture.members, firsts, faults, strict=False)
        ]
    )
    return numbered, NumberedMixture(numbered, firsts)


class NumberedMixture:
    """What the numbers of a mixture's rows mean: those of one source after those of another."""

    def __init__(self, mixture: MixedSource, firsts: list[int]) -> None:
        self._mixture = mixture
        self._firsts = firsts

    @property
    def _sources(self) -> list[NumberedSource]:
        return [cast("NumberedSource", member.source) for member in self._mixture.members]

    @property
    def has_failures(self) -> bool:
        return any(source.has_failures for source in self._sources)

    def report_missing(self, numbers: Sequence[int]) -> MissingRows:
        numbers_by_source: dict[int, list[int]] = {}
        for number in numbers:
            numbers_by_source.setdefault(self._find(number), []).append(number)
        reports = []
        for i, wanted in numbers_by_source.items():
            report, name = self._sources[i].report_missing(wanted), self._mixture.members[i].name
            report.entries = [replace(entry, path=entry.path or name) for entry in report.entries]
            reports.append(report)
        return reduce(add, reports)

    def locate(self, numbers: Sequence[int]) -> list[Place]:
        places = []
        for number in numbers:
            i = self._find(number)
            ((path, row),) = self._sources[i].locate([number])
            places.append((path or self._mixture.members[i].name, row))
        return places

    def _find(self, number: int) -> int:
        return bisect_right(self._firsts, number) - 1

    def sample(self) -> Iterator[_core.DeviceArray]:
        for i, source in enumerate(self._sources):
            for row in source.sample():
                yield from (
                    adapted
                    for adapted in self._mixture.columns.adapt(_core.chain([row]), i)
                    if len(adapted)
                )
