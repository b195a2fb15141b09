"""The record in a browser on this machine: pages that only read, for the one person who has the link."""
