"""Hong, Wang, Zhou (FAccT 2022): gradient descent with noise that falls from step to step.

For smooth objectives that satisfy the Polyak-Lojasiewicz inequality the paper bounds the expected
excess after T noisy steps by ``gamma**T`` plus a sum of noise variances, each weighted by its
influence (Thms 4.2 and 4.6). Noise in proportion to ``influence**(-1/4)`` minimises the bound for a
given budget (Lemma 4.4); the noise term is then less than with uniform noise, by a factor that
grows with T.

Solver "gd" with ``condition_number`` and ``initial_gap`` is Algorithm 1 with its optimal schedule,
and its number of steps (`skdp.solvers.core.bound_rules`); with ``momentum="averaged"`` it is
the version with momentum. "residual_budget" is Algorithm 1 with requests that may depend on earlier
answers, guarded by a privacy filter. By default both have uniform noise and the steps of "gd".

Worth using: ``noise_schedule="exponential"`` in runs whose later steps undo the noise of earlier
ones, so with strongly convex objectives and many steps, and above all with few rows. Requests that
adapt (``boost`` above 1) were nowhere measurably better.
"""
