"""Wu, Wang, Cristali, Gu, Willett (2021): noise matched to the step sizes of SGD.

For smooth losses, convex or not, the paper bounds the mean squared gradient of SGD with step sizes
``eta_t`` and noise ``alpha_t``. Of all noise of equal cost, ``alpha_t`` in proportion to
``eta_t ** (-1/2)`` minimises the noise term (Thm 4.2), so noise rises as steps fall. The gain over
uniform noise grows with the range of the step sizes, and vanishes for constant steps.

"adp_sgd" is this algorithm (ADP-SGD). By default the last of 200 to 1000 steps is half as long as
the first, noise is "step_matched", and all rows are in each step; ``noise_schedule="uniform"`` is
DP-SGD. ``AdaptiveStep`` follows the norms of the *noisy* gradients: as printed, the adaptive steps
are computed from gradients without noise, which is not private.

Worth using: to compare schedules of steps and noise. It is about as accurate as "gd" and slower.
"""
