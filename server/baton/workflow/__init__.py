"""A whole job in phases: planned, done, tested, reviewed and fixed, each step with its evidence."""
