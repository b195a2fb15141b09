"""Job files: many like jobs, run to the end through limits, crashes and reboots."""
