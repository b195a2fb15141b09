"""The environment that the programs run in: where it lies, how it is built, used and removed.

Everything in this room runs with the standard library alone, on Python 3.8 and later, since it works where
nothing has been built yet.
"""
