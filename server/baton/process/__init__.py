"""Children and their whole process trees: start, bound, end, and what they may see of the environment."""
