"""Public bug reports, questions and odd files as inputs, with the right value and the package's."""
