"""Varshney, Thakurta, Jain (COLT 2022): linear regression in one pass over shuffled rows.

For sub-Gaussian rows the paper proves that one pass of noisy steps reaches an excess of the order
of the lower bound, up to the condition number and logarithms (Thm 3.2), and, where the clipping
norm follows the residuals, one that vanishes with the noise of the targets (Thm 3.7).

"shuffled_sgd" is DP-SSGD, with a fixed clipping norm; "adaptive_shuffled_sgd" is DP-AMBSSGD, which
finds the clipping norm of each block by noisy counts on other rows of the block. By default the
number of blocks is about ``kappa ln n``, with a condition number that is guessed for standardised
columns, and the mean of the last half of the iterates is returned. The paper's single records,
amplified by shuffling, are ``batch_size=1``.

Worth using: where rows can be read only once. ``solver="auto"`` takes "adaptive_shuffled_sgd" for
rows that arrive in blocks; for rows in memory "gd" is better.
"""
