"""The process of an isolated check: each case is written down before it begins."""

from __future__ import annotations

import faulthandler
import json
import pickle
import sys
from pathlib import Path

from arrowdl.testing._checks import CHECKS
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import find_target, run_case


def main() -> None:
    """Run the check that the parent process sent, without the cases that it has done."""
    name, path, timeout, payload = pickle.loads(sys.stdin.buffer.read())
    sys.path[:] = path
    target, options, done = pickle.loads(payload)
    check = CHECKS[name]
    subject = check.open(find_target(target), **options)
    with Path(sys.argv[-1]).open("w") as results:
        for case in check.cases:
            if case.name in done:
                continue
            recorder = Recorder()
            print(json.dumps({"begin": case.name}), file=results, flush=True)
            faulthandler.dump_traceback_later(timeout, exit=True)
            run_case(case, subject, recorder)
            faulthandler.cancel_dump_traceback_later()
            cells = [
                (found.rule.id, found.severity, found.case, found.seen, found.advice)
                for found in recorder.findings
            ]
            line = {"end": case.name, "findings": cells, "checked": recorder.checked}
            print(json.dumps(line), file=results, flush=True)
