"""The command ``python -m arrowdl doctor``, which prints a report for bug reports."""

import sys

from arrowdl import doctor

if sys.argv[1:] != ["doctor"]:
    sys.exit("usage: python -m arrowdl doctor")
print(doctor())
