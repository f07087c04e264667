"""Wang, Ye, Xu (NeurIPS 2017): variance reduction and accelerated mirror descent.

For smooth losses the paper proves that DP-SVRG (strongly convex, Thm 4.2) and DP-SVRG++ (convex,
Thm 4.4) reach the excess of noisy gradient descent, up to logarithms, with far fewer gradients, and
that accelerated mirror descent on a bounded set pays for the set's Gaussian width in place of the
number of columns (Thm 5.4). For losses that are not convex it bounds the gradient at a random
iterate (Thm 6.3).

"svrg" is Algorithm 1, "svrg++" Algorithm 2, "accelerated_mirror_descent" Algorithm 3 (DP-AccMD) and
"gd" with uniform noise and no momentum Algorithm 4 (DP-GD). By default the first two take 60 to
1000 steps on batches of a tenth of the rows, the third 30 to 150 on all rows; with
``condition_number`` and ``initial_gap`` "svrg" and "svrg++" take the theorems' steps.

Worth using: "svrg" and "svrg++" where only a few passes over many rows are affordable; "gd" was
better after many passes. "accelerated_mirror_descent" only on an L1 ball or a simplex with more
columns than rows.
"""
