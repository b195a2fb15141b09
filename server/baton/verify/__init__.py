"""Checks: read a command, find its toolchain, run it in the sandbox on one tree, keep its output."""
