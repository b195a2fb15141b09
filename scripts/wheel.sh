#!/bin/sh
# Builds the wheel into DIR, installs it into a clean environment with the locked packages, and tries it there: every
# entry point, and the demonstration with the real Codex. scripts/wheel.sh DIR
set -eu
[ $# -eq 1 ] || {
    echo "usage: scripts/wheel.sh DIR" >&2
    exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd -P)
cd "$(dirname "$0")/.."
checkout=$(pwd -P)
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
python=$(scripts/setup.sh)
codex=$("$python" -I -c 'import codex_cli_bin as c; print(c.bundled_codex_path())')
trial=$(mktemp -d "${XDG_CACHE_HOME:-$HOME/.cache}/baton/wheel-XXXXXX")
trap 'rm -rf "$trial"' EXIT

"$python" -I -m venv "$trial/env"
own=$trial/env/bin/python
"$own" -I -m pip wheel -q --no-deps -w "$out" "$checkout"
wheel=$(ls -t "$out"/baton_orchestrator-*.whl | head -n 1)
"$own" -I -m pip install -q --require-hashes -r requirements.lock
"$own" -I -m pip install -q --no-deps "$wheel"

# From here on nothing of the checkout is in reach.
cd "$trial"
mkdir home
unset PYTHONPATH BATON_STATE CODEX_HOME
HOME=$trial/home BATON_CODEX_BIN=$codex XDG_CACHE_HOME=$trial/home/.cache
PATH=$trial/env/bin:$PATH
export HOME BATON_CODEX_BIN XDG_CACHE_HOME PATH
for name in baton baton-server baton-runner baton-guard; do
    [ -x "env/bin/$name" ] || {
        echo "wheel: it has no program $name" >&2
        exit 1
    }
done
baton --version
baton policy check
baton runs list
baton-server </dev/null
status=0
baton-runner 2>runner.txt || status=$?
[ "$status" -eq 2 ] && grep -q '^usage: baton-runner' runner.txt
baton demo
echo "wheel: $wheel"
