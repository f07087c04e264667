"""Entry point of ``python -m skdp``."""

from skdp.demo import main

if __name__ == "__main__":
    raise SystemExit(main())
