"""Where rows live: in memory, or arriving one block after the other."""
