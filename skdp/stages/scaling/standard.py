"""Columns that are standardised already: told from all their magnitudes together.

One column's rare values drown in the noise of its counts; the counts of all columns together show
them. Columns that have been standardised lie on both sides of 0 and are of about unit size.
"""

import math

import numpy as np

from skdp._numbers import Array, Mask
from skdp.oracle import Columns
from skdp.oracle.kernels.histograms import SIDE, STEPS

Z_TOLERANCE, Z_DETECT = 3.0, 2.0  # noises that are borne, and that a size must stand out by
MIN_NEGATIVE_SHARE = 0.35  # share of the values
MIN_UNIT_SHARE = 0.5  # share of the values between 1/16 and 16 in size
MAX_MEAN_SQUARE = 1.8  # mean square of values cut at 2, those beyond 16 left out
MAX_OUTLYING_SHARE = (
    0.5  # share of a column's values out of half_width that tells it from the others
)
# Range of a standardised column: farther out lie outliers and the rarest labels. Where more than
# a share of the values visibly lies there, these are the ones of rare labels, and it is wider.
HALF_WIDTH, RARE_SHARE, HALF_WIDTH_RARE = 4.0, 0.011, 9.0
MAX_POOLED_NOISE = 0.06  # on the shares of all columns together, for any conclusion


def detect_standardised(counts: Array, std: Array, n_rows: int) -> Array:
    """Return how far from 0 the range of columns goes that are taken to be standardised already.

    It is 0 for other columns.

    Parameters
    ----------
    counts : array of shape (n_columns, n_magnitudes)
        Noisy counts by sign and magnitude.
    std : array of shape (n_columns,)
        Noise on the counts of each column.
    n_rows : int
    """
    n_columns = len(counts)
    shares = counts / n_rows
    noise = float(np.sqrt(np.mean(std**2) / n_columns)) / n_rows
    if noise > MAX_POOLED_NOISE:
        return np.zeros(n_columns)
    together = shares.mean(axis=0)
    low = _lower_ends()
    usual = (low >= 1 / 256) & (low < 16)

    def share(chosen: Mask) -> tuple[float, float]:
        return float(together[chosen].sum()), Z_TOLERANCE * noise * math.sqrt(chosen.sum())

    squares = np.where(low < 16, np.minimum(3.0 * low**2, 4.0), 0.0)  # about those in a bin
    square, slack_square = (
        float(together @ squares),
        Z_TOLERANCE * noise * float(np.linalg.norm(squares)),
    )
    # Few bins, so that little noise adds up.
    negative = float(together[:SIDE][usual[:SIDE]].sum())
    within = float(together[(low >= 1 / 16) & (low < 16)].sum())
    # Around 0, E[x+] = E[-x-], and E[x+]**2 <= P(x > 0) E[x**2] by Cauchy and Schwarz: columns
    # whose values are nearly all on one side are not centred.
    sizes = np.where((np.arange(len(low)) < SIDE) & (low < 4), low, 0.0)
    below = max(float(together @ sizes), 0.0)
    above, slack_above = share((np.arange(len(low)) > SIDE) & (low >= 1 / 16) & (low < 16))
    slack_below = 2 * below * Z_TOLERANCE * noise * float(np.linalg.norm(sizes))  # of its square
    centred = below**2 - above <= Z_DETECT / Z_TOLERANCE * math.hypot(slack_below, slack_above)
    holds = (
        centred
        and slack_square * Z_DETECT / Z_TOLERANCE <= square <= MAX_MEAN_SQUARE + slack_square
        and negative >= MIN_NEGATIVE_SHARE
        and within >= MIN_UNIT_SHARE
    )
    if not holds:
        return np.zeros(n_columns)
    rare, slack_rare = share((low >= 4) & (low < 16))  # two bins, so that little noise adds up
    half_width = HALF_WIDTH_RARE if rare > max(RARE_SHARE, slack_rare) else HALF_WIDTH
    out_of_reach = shares[:, (low >= 16) | ((low > 0) & (low < 1 / 1024))]
    slack = Z_TOLERANCE * std / n_rows
    within_reach = out_of_reach.sum(axis=1) <= MAX_OUTLYING_SHARE + slack * math.sqrt(2 * SIDE)
    # One bin alone has less noise than all of them, and a column far from 0 fills one.
    within_reach &= out_of_reach.max(axis=1) <= MAX_OUTLYING_SHARE + slack
    return np.where(within_reach, half_width, 0.0)


def keep_standardised(columns: Columns, half_width: Array) -> Columns:
    """Return the columns with those that are standardised taken as they are."""
    standard = half_width > 0
    return Columns(
        np.where(standard, -half_width, columns.low),
        np.where(standard, half_width, columns.high),
        np.where(standard, 0.0, columns.centre),
        np.where(standard, 1.0, columns.size),
    )


def _lower_ends() -> Array:
    """Least magnitude of every bin: negative values from large to small, zero, positive ones."""
    side = 4.0 ** (np.arange(SIDE) - STEPS)
    return np.concatenate([side[::-1], [0.0], side])
