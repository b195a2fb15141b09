"""What crosses a boundary: models, states and errors. Knows neither files nor processes."""
