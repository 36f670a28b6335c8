"""More behaviours: what is tried with programs of the repository."""
