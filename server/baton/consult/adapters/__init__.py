"""One file for each agent command line, behind one small protocol."""
