#!/bin/sh
# Everything that must hold before a change lands: scripts/test.sh [--all] [PYTEST ARGS…]
# Without --all the tests marked `long` are left out. Nothing is written into the checkout. What is not here and is
# needed by some tests is said, with the command that installs it, and they are skipped.
set -eu
case ${1:-} in
-h | --help)
    echo "usage: scripts/test.sh [--all] [PYTEST ARGS…]"
    exit 0
    ;;
esac
cd "$(dirname "$0")/.."
python=$(scripts/setup.sh)
PATH=$(dirname "$python"):$PATH
cache=$(dirname "$(dirname "$python")")/cache
export PATH
export PYTHONPYCACHEPREFIX="$cache/compiled"
export RUFF_CACHE_DIR="$cache/ruff" MYPY_CACHE_DIR="$cache/mypy" HYPOTHESIS_STORAGE_DIRECTORY="$cache/hypothesis"

missing() { # what, tests of what, packages of Debian
    echo "test.sh: $1: the tests of $2 are skipped; this installs what they need on Debian:" \
        "apt-get install $3" >&2
}

command -v tmux >/dev/null || missing "NO TERMINAL" "what is shown in one" tmux
tier="not long"
if [ "${1:-}" = --all ]; then
    tier=
    shift
    browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
    [ -n "$browser" ] && command -v chromedriver >/dev/null ||
        missing "NO BROWSER" "pages in a real one" "chromium chromium-driver"
fi

scripts/arguments.sh test.sh "$python" "$@"
ruff check --quiet --output-format concise .
ruff format --quiet --check .
mypy
"$python" scripts/validate.py
exec "$python" -m pytest -q -rs -n 2 -o cache_dir="$cache/pytest" -m "$tier" "$@"
