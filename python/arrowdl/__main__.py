"""``python -m arrowdl doctor``."""

import sys

from arrowdl import doctor

if sys.argv[1:] != ["doctor"]:
    sys.exit("usage: python -m arrowdl doctor")
print(doctor())
