#!/bin/sh
# Everything that must hold before a change lands: scripts/test.sh [--all] [PYTEST ARGS…]
# Without --all the tests marked `long` are left out. Nothing is written into the checkout.
set -eu
cd "$(dirname "$0")/.."
python=$(scripts/setup.sh)
PATH=$(dirname "$python"):$PATH
cache=$(dirname "$(dirname "$python")")/cache
export PATH
export PYTHONPYCACHEPREFIX="$cache/compiled"
export RUFF_CACHE_DIR="$cache/ruff" MYPY_CACHE_DIR="$cache/mypy" HYPOTHESIS_STORAGE_DIRECTORY="$cache/hypothesis"

tier="not long"
if [ "${1:-}" = --all ]; then
    tier=
    shift
    browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
    if [ -z "$browser" ] || ! command -v chromedriver >/dev/null; then
        echo "test.sh: NO BROWSER: the tests of pages in a real browser are skipped;" \
            "install Chromium and its driver (Debian: apt-get install chromium chromium-driver)" >&2
    fi
fi

ruff check --quiet --output-format concise .
ruff format --quiet --check .
mypy
"$python" scripts/validate.py
exec "$python" -m pytest -q -n 2 -o cache_dir="$cache/pytest" -m "$tier" "$@"
