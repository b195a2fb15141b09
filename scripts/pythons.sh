#!/bin/sh
# Prints a Python of the wanted version, such as 3.12, or nothing: scripts/pythons.sh VERSION
# Looked at: PATH, pyenv, ~/.local/bin, uv's own; what only has the name is passed over.
set -u
wanted=$1
fits="import sys; print(sys.executable); sys.exit(sys.version_info[:2] != tuple(map(int, '$wanted'.split('.'))))"
for candidate in "python$wanted" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$wanted".*/bin/python3 \
    "$HOME/.local/bin/python$wanted" "$(command -v uv >/dev/null 2>&1 && uv python find --no-config "$wanted" 2>/dev/null)"; do
    [ -n "$candidate" ] || continue
    if found=$("$candidate" -I -S -c "$fits" 2>/dev/null); then
        echo "$found"
        exit 0
    fi
done
exit 1
