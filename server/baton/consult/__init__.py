"""Second opinions: one question put to another agent's command line, contained and recorded."""
