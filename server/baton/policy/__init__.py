"""Defaults and limits: load, layer and validate them, resolve tiers to models, render skills and agents."""
