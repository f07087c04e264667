"""Entry point of ``python -m skdp``: the demonstration, and ``ledger`` to read a budget's file."""

import sys

from skdp import demo
from skdp._fitting import ledger

if __name__ == "__main__":
    is_ledger = sys.argv[1:2] == ["ledger"]
    raise SystemExit(ledger.run_command(sys.argv[2:]) if is_ledger else demo.main())
