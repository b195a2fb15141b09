"""What happened, durably: runs, tasks, attempts, events, commands, processes, artifacts and locks."""
