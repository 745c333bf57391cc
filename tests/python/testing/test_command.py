"""`python -m arrowdl check`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from arrowdl.testing import ConformanceError, check_dlpack_producer
from arrowdl.testing._command import main
from arrowdl.testing._rules import RULES


def test_no_errors_is_0_and_json_has_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["numpy:from_dlpack", "--as", "dlpack-consumer", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["check"] == "dlpack-consumer"
    assert report["subject"] == "numpy:from_dlpack"
    assert "from-dlpack-reads" in report["passed"]
    (finding,) = report["findings"]
    assert finding["rule"] == "from-dlpack-device"
    assert finding["url"].startswith("https://dmlc.github.io/dlpack/")


def test_errors_are_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["helpers.conformance:calls_null", "--as", "dlpack-consumer"]) == 1
    assert "error: from-dlpack-null-deleter: the process was killed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "the following arguments are required"),
        (["numpy"], '"numpy" is not "module:object"'),
        (["no_such_module:x"], "cannot import no_such_module:x"),
        (["numpy:from_dlpack"], "say what it is with --as"),
        (["numpy:pi", "--as", "dlpack-producer", "--tables"], "--tables is not an option of"),
    ],
)
def test_wrong_usage_is_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.slow
def test_it_is_a_command() -> None:
    command = [sys.executable, "-m", "arrowdl", "check", "numpy:from_dlpack"]
    done = subprocess.run(
        [*command, "--as", "dlpack-consumer"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("dlpack-consumer of numpy:from_dlpack: 0 errors, 1 warnings")


def test_errors_are_raised_with_the_report() -> None:
    class Wrong:
        def __dlpack__(self, **_: object) -> object:
            return 3

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    report = check_dlpack_producer(Wrong())
    with pytest.raises(ConformanceError, match="returned int, not a PyCapsule"):
        report.raise_for_errors()


def test_every_rule_says_where_it_comes_from() -> None:
    for name, rule in RULES.items():
        assert rule.id == name
        assert rule.section
        assert rule.sentence.endswith("."), name
        assert rule.specification.url.startswith("https://"), name
