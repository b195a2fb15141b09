"""The life of a run: schedule, attempt, judge, recover, integrate. Knows neither MCP nor terminals."""
