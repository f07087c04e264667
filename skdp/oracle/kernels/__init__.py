"""Block functions: what is computed from a block of records, in numpy."""
