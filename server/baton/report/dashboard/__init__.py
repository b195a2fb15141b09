"""The record in a browser on this machine: pages that read, for the one person who has the link.

One page can change something, where the person has switched that on: the agents that may be asked.
"""
