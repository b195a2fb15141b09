"""The MCP server: thin functions over the engine, and the rendered surface that the front answers from."""
