#!/bin/sh
# Runs one of Baton's programs from the environment of this bundle: scripts/program.sh NAME ARGS…
# Any Python 3.8 or newer will do to start with; the door finds or asks for the one that Baton needs.
set -u
case $(uname -s) in
MINGW* | MSYS* | CYGWIN* | Windows*)
    echo "$1: Windows is not supported; use Linux, macOS or a Linux distribution under WSL" >&2
    exit 1
    ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
door=$root/server/baton/runtime/door.py
fits='import sys; sys.exit(sys.version_info < (3, 8))'
for python in "${BATON_PYTHON:-}" python3 python3.13 python3.12 python3.14 python3.11 \
    /usr/local/bin/python3 /opt/homebrew/bin/python3 "$HOME"/.local/bin/python3.1[1-4] \
    "$HOME"/.local/share/uv/python/*/bin/python3; do
    [ -n "$python" ] || continue
    if "$python" -I -S -c "$fits" 2>/dev/null; then
        exec "$python" -I -S -B "$door" "$root" "$@"
    fi
done
echo "$1: Python 3.11 to 3.14 is needed, and none was found; BATON_PYTHON may name one" >&2
exit 1
