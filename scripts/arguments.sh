#!/bin/sh
# Says in one line that pytest does not know an argument: scripts/arguments.sh NAME PYTHON [PYTEST ARGS…]
# Exit status 4 then, as pytest's own. No test is run or collected.
set -u
name=$1 python=$2
shift 2
[ $# -gt 0 ] || exit 0
said=$("$python" -m pytest -p no:cacheprovider --markers "$@" 2>&1 >/dev/null) && exit 0
echo "$name: $(echo "$said" | sed -n 's/^.*error: //p' | head -n 1); see scripts/$name --help" >&2
exit 4
