"""Which column of a table is which, by names and by values, and what its cells hold."""
