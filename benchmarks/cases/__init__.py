"""Generated data with ugly columns and ugly targets, and what a private fit loses on them."""
