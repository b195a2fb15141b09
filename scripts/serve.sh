#!/bin/sh
# Starts the front with the first Python found, without a shim: a version manager's shim takes longer than the
# front itself. The front looks for a newer Python where the full server needs one.
here=${0%/*}
set -f
IFS=:
for folder in $PATH; do
    case $folder in
    '' | */shims) continue ;;
    esac
    if [ -x "$folder/python3" ]; then
        exec "$folder/python3" -I -S "$here/serve.py"
    fi
done
unset IFS
set +f
for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 "$HOME"/.local/share/uv/python/*/bin/python3; do
    if [ -x "$python" ]; then
        exec "$python" -I -S "$here/serve.py"
    fi
done
exec python3 -I -S "$here/serve.py"
