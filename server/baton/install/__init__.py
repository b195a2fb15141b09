"""Baton in a person's home: owned files, the server's entry in config.toml, and what is wrong with them."""
