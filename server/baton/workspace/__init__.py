"""Private repository, snapshot, worktree, scope, capture, merge, apply. Knows no Codex and no verdicts."""
