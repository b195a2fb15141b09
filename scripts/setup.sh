#!/bin/sh
# Makes the development environment, outside the checkout, or finds it made already; prints its Python.
# Usage: scripts/setup.sh [--quiet]
set -eu
export PYTHONDONTWRITEBYTECODE=1
checkout=$(cd "$(dirname "$0")/.." && pwd -P)

fail() {
    echo "setup: $1" >&2
    exit 1
}

version_at_least() { # version, major, minor
    major=${1%%.*}
    rest=${1#*.}
    minor=${rest%%.*}
    [ "$major" -gt "$2" ] || { [ "$major" -eq "$2" ] && [ "$minor" -ge "$3" ]; }
}

command -v git >/dev/null 2>&1 || fail "git 2.38 or newer is needed, and there is none on PATH"
git_version=$(git --version)
git_version=${git_version#git version }
version_at_least "$git_version" 2 38 || fail "git 2.38 or newer is needed, and this is $git_version"

fits='import sys; print(sys.executable); sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))'
python=
for candidate in "${BATON_PYTHON:-}" python3 python3.13 python3.12 python3.14 python3.11 \
    "$HOME"/.local/bin/python3.1[1-4] "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[1-4]*/bin/python3; do
    [ -n "$candidate" ] || continue
    if python=$("$candidate" -I -S -c "$fits" 2>/dev/null); then
        break
    fi
    python=
done
[ -n "$python" ] || fail "Python 3.11 to 3.14 is needed, and none was found; BATON_PYTHON may name one"

key=$({
    cat "$checkout/requirements-dev.lock" "$checkout/scripts/setup.sh"
    echo "$checkout $python"
    "$python" -I -S -V
} | git hash-object --stdin | cut -c1-16)
environment=${XDG_CACHE_HOME:-$HOME/.cache}/baton/dev-$key

if [ ! -e "$environment/ready" ]; then
    mkdir -p "$environment"
    # One at a time: a second setup waits for the first (the lock ends with this shell, however it ends).
    exec 9>"$environment.lock"
    "$python" -I -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
fi
if [ ! -e "$environment/ready" ]; then
    echo "setup: making the development environment in $environment" >&2
    rm -rf "$environment"
    log=$environment.log
    if command -v uv >/dev/null 2>&1 && uv venv -q --no-config --python "$python" "$environment" >"$log" 2>&1 &&
        uv pip install -q --python "$environment/bin/python" --require-hashes \
            -r "$checkout/requirements-dev.lock" >>"$log" 2>&1; then
        :
    else
        rm -rf "$environment"
        "$python" -I -m venv "$environment" >"$log" 2>&1 ||
            fail "no virtual environment could be made: is the venv package of $python there? (log: $log)"
        "$environment/bin/python" -I -m pip install -q --no-input --disable-pip-version-check --require-hashes \
            -r "$checkout/requirements-dev.lock" >>"$log" 2>&1 ||
            fail "the packages could not be installed: $(tail -n 1 "$log") (log: $log)"
    fi
    for site in "$environment"/lib/python3.*/site-packages; do
        "$python" -I -S "$checkout/server/baton/runtime/path_file.py" "$checkout/server" >"$site/baton.pth"
    done
    # The real Codex CLI comes as a package that puts no program on PATH.
    codex=$("$environment/bin/python" -I -c 'import codex_cli_bin as c; print(c.bundled_codex_path())' 2>/dev/null ||
        true)
    if [ -n "$codex" ] && [ ! -e "$environment/bin/codex" ]; then
        ln -s "$codex" "$environment/bin/codex"
    fi
    : >"$environment/ready"
fi
[ "${1:-}" = --quiet ] || echo "$environment/bin/python"
