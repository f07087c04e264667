"""The benchmarks are not installed: they are found beside the tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
