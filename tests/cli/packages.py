"""Where the Python that runs a test lacks packages, $LOCKSTEP_TEST_PYTHON may have them."""
import importlib.util
import os
import sys


def want(*names):
    """Begins the test anew with that Python, if this one lacks any of them."""
    python = os.environ.pop('LOCKSTEP_TEST_PYTHON', '')
    if python and not all(importlib.util.find_spec(name) for name in names):
        os.execv(python, [python, *sys.argv])
