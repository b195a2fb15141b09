"""What happened, for people to read: one set of templates for the report and the dashboard."""
