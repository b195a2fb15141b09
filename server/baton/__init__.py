"""Baton: a supervisor's tools for delegating bounded work to Codex workers."""

__version__ = "0.1.0"
