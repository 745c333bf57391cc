"""What a check found: findings, each with its rule, and the report of all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from arrowdl.testing._rules import RULES, Rule

Severity = Literal["error", "warning", "skipped"]
"""``"error"`` breaks the specification, ``"warning"`` is allowed but harms users, and
``"skipped"`` could not be checked."""


class ConformanceError(AssertionError):
    """Raised by `Report.raise_for_errors`; its text is the report."""


@dataclass(frozen=True)
class Finding:
    """One deviation from a rule, or a rule that could not be checked.

    Attributes
    ----------
    rule : Rule
    severity : {"error", "warning", "skipped"}
    case : str
        What was tried.
    seen : str
        What happened.
    advice : str
        What to do about it.
    """

    rule: Rule
    severity: Severity
    case: str
    seen: str
    advice: str

    def __str__(self) -> str:
        lines = [f"{self.severity}: {self.rule.id}: {self.seen}  [{self.case}]"]
        if self.severity != "skipped":
            lines.append(f"  rule: {self.rule.sentence}")
            lines.append(f"        {self.rule.specification.title}, {self.rule.section}")
            lines.append(f"  do:   {self.advice}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """The result of a check.

    Attributes
    ----------
    check : str
        The name of the check, such as ``"dlpack-producer"``.
    subject : str
        What was checked.
    findings : tuple of Finding
        At most one for each rule, severity and thing that was seen.
    passed : tuple of str
        The ids of the rules that were checked and have no finding.
    """

    check: str
    subject: str
    findings: tuple[Finding, ...]
    passed: tuple[str, ...]

    def _with_severity(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == severity)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that break a specification."""
        return self._with_severity("error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that a specification allows, and that harm users."""
        return self._with_severity("warning")

    @property
    def skipped(self) -> tuple[Finding, ...]:
        """The rules that could not be checked, and why."""
        return self._with_severity("skipped")

    def raise_for_errors(self) -> None:
        """Raise if there are errors.

        Raises
        ------
        ConformanceError
            An `AssertionError` whose text is the report.
        """
        if self.errors:
            raise ConformanceError(str(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        rows = [
            {
                "rule": finding.rule.id,
                "severity": finding.severity,
                "case": finding.case,
                "seen": finding.seen,
                "advice": finding.advice,
                "sentence": finding.rule.sentence,
                "specification": finding.rule.specification.title,
                "section": finding.rule.section,
                "url": finding.rule.specification.url,
            }
            for finding in self.findings
        ]
        parts = {"check": self.check, "subject": self.subject}
        return {**parts, "findings": rows, "passed": list(self.passed)}

    def __str__(self) -> str:
        counts = (len(self.errors), len(self.warnings), len(self.skipped), len(self.passed))
        words = ("errors", "warnings", "skipped", "passed")
        summary = ", ".join(f"{count} {word}" for count, word in zip(counts, words, strict=True))
        order = [*self.errors, *self.warnings, *self.skipped]
        return "\n".join([f"{self.check} of {self.subject}: {summary}", *map(str, order)])


@dataclass
class Recorder:
    """Collects what the cases of a check find."""

    findings: list[Finding] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    case: str = ""
    rule: str = ""

    @contextmanager
    def trying(self, case: str, rule: str | None = None) -> Iterator[None]:
        """What is recorded inside belongs to `case`, whose crashes break `rule`."""
        before = self.case, self.rule
        self.case, self.rule = case, rule or self.rule
        try:
            yield
        finally:
            self.case, self.rule = before

    def _add(self, severity: Severity, rule: str, seen: str, advice: str = "") -> None:
        broken = RULES[rule or self.rule]
        if severity != "skipped":
            advice = advice or broken.advice
        self.findings.append(Finding(broken, severity, self.case, seen, advice))

    # In each of these `rule` is by default that of the case, and `advice` that of the rule.
    def error(self, seen: str, *, rule: str = "", advice: str = "") -> None:
        self._add("error", rule, seen, advice)

    def skip(self, why: str, *, rule: str = "") -> None:
        self._add("skipped", rule, why)

    def expect(
        self,
        holds: bool,
        seen: str,
        *,
        rule: str = "",
        advice: str = "",
        severity: Literal["error", "warning"] = "error",
    ) -> bool:
        """Record that `rule` was checked, and a finding unless it `holds`, which is returned."""
        self.passed(rule)
        if not holds:
            self._add(severity, rule, seen, advice)
        return holds

    def prefer(self, holds: bool, seen: str, *, rule: str = "", advice: str = "") -> bool:
        """Record that `rule` was checked, and a warning unless it `holds`, which is returned."""
        return self.expect(holds, seen, rule=rule, advice=advice, severity="warning")

    def passed(self, rule: str = "") -> None:
        """Record that `rule` was checked."""
        self.checked.append(rule or self.rule)

    def report(self, check: str, subject: str) -> Report:
        merged: dict[tuple[str, str, str], list[Finding]] = {}
        for finding in self.findings:
            key = (finding.rule.id, finding.severity, finding.seen)
            merged.setdefault(key, []).append(finding)
        rules = {finding.rule.id for finding in self.findings if finding.severity != "skipped"}
        checked = dict.fromkeys(rule for rule in self.checked if rule not in rules)
        findings = [
            replace(same[0], case=_join(dict.fromkeys(finding.case for finding in same)))
            for (rule, severity, _), same in merged.items()
            if severity != "skipped" or not (rule in rules or rule in checked)
        ]
        return Report(check, subject, tuple(findings), tuple(checked))


def _join(cases: dict[str, None]) -> str:
    names = list(cases)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
