"""Functions of a block of records, each in numpy and, where that pays, compiled beside it."""
