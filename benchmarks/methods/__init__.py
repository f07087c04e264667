"""Methods: each module has NAME, applies(split) and make(epsilon, delta, seed)."""
