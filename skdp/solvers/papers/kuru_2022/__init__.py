"""Kuru, Birbil, Gurbuzbalaban, Yildirim (SIAM J. Optim. 2022): accelerated methods, Laplace noise.

For smooth and strongly convex objectives the paper bounds the expected excess of the heavy ball
(Prop. 3.4, Thm 3.5), of Nesterov's method (eq. 32) and of Nesterov's method in stages (eq. 34) with
noisy gradients, and finds the Laplace noise that minimises the bounds for a given epsilon, in
proportion to ``influence**(-1/3)`` (Prop. 4.2).

"heavy_ball" is DP-HB (DP-SHB on batches), "nesterov" DP-NAG and "multistage_nesterov" DP-MASG; with
``noise_schedule="optimal"``, the default, the last two are DP-NAG-opt and DP-MASG-opt. By default
the number of steps, and for the heavy ball its momentum, minimise the bound; noise is Laplace if
delta is 0, otherwise Gaussian.

Worth using: "nesterov" with delta = 0, a strongly convex penalty and few steps. Otherwise "gd" was
mostly better, as the public bound on the curvature makes for short steps.
"""
