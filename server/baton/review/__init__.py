"""Reviews of work by other agents, with a checkpoint before anything is sent."""
