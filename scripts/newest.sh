#!/bin/sh
# The types and tests with the newest versions that the project allows of everything: scripts/newest.sh [PYTEST ARGS…]
# The environment is made anew each time, outside the checkout. Prints where it differs from the lock.
set -eu
case ${1:-} in
-h | --help)
    echo "usage: scripts/newest.sh [PYTEST ARGS…]"
    exit 0
    ;;
esac
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
locked=$(scripts/setup.sh)
scripts/arguments.sh newest.sh "$locked" "$@"
environment=${XDG_CACHE_HOME:-$HOME/.cache}/baton/newest
rm -rf "$environment"
"$locked" -I -m venv "$environment"
python=$environment/bin/python
"$locked" -I - >"$environment/requirements.txt" <<'LIST'
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
print("\n".join([*project["dependencies"], *extras["codex"], *extras["dev"]]))
LIST
"$python" -I -m pip install -q --no-input --disable-pip-version-check --upgrade -r "$environment/requirements.txt" || {
    echo "newest: SKIPPED: the packages could not be fetched" >&2
    exit 1
}
for site in "$environment"/lib/python3.*/site-packages; do
    "$python" -I -S server/baton/runtime/path_file.py "$PWD/server" >"$site/baton.pth"
done
codex=$("$python" -I -c 'import codex_cli_bin as c; print(c.bundled_codex_path())')
[ -e "$environment/bin/codex" ] || ln -s "$codex" "$environment/bin/codex"
"$python" -I - requirements-dev.lock <<'DIFFERENCE'
import re, sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

pins = re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", Path(sys.argv[1]).read_text(), re.MULTILINE)
for name, pinned in sorted(pins):
    try:
        newest = version(name)
    except PackageNotFoundError:
        continue
    if newest != pinned:
        print(f"newest: {name} {newest} (the lock has {pinned})")
DIFFERENCE
PATH=$environment/bin:$PATH
export PATH
export MYPY_CACHE_DIR="$environment/cache/mypy" HYPOTHESIS_STORAGE_DIRECTORY="$environment/cache/hypothesis"
mypy
exec "$python" -m pytest -q -n 2 -o cache_dir="$environment/cache/pytest" -m "not long" "$@"
