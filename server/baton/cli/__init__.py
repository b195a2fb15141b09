"""The `baton` command: thin doors for a person at a terminal."""
