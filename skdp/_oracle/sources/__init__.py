"""Sources of rows: in memory, in partitions, or arriving one block after the other."""
