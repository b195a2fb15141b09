#!/bin/sh
# Runs a Python file in the development environment: scripts/python.sh FILE ARGS…
set -eu
here=$(dirname "$0")
python=$("$here/setup.sh")
# Compiled once, outside the checkout: every program of a run starts from there.
export PYTHONPYCACHEPREFIX="${python%/bin/*}/cache/compiled"
PATH=$(dirname "$python"):$PATH
export PATH
exec "$python" "$@"
