"""Everything that knows the Codex program: where it is, how it is kept, how it is talked to."""
