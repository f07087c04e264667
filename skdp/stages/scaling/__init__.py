"""Range, centre and size of columns, found privately and paid for."""
