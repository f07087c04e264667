"""Methods: each module has METHODS, a list of benchmarks.registry.Method."""
