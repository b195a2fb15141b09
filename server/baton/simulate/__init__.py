"""The embedded model: a scripted Responses server and scripted workers, for the demo and the tests."""
