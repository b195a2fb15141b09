#!/bin/sh
# Runs a Python file in the development environment: scripts/python.sh FILE ARGS…
set -eu
here=$(dirname "$0")
python=$("$here/setup.sh")
export PYTHONDONTWRITEBYTECODE=1
PATH=$(dirname "$python"):$PATH
export PATH
exec "$python" "$@"
