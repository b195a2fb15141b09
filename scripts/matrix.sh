#!/bin/sh
# The checks of scripts/test.sh on every supported Python that is here: scripts/matrix.sh [ARGS OF test.sh…]
# A version that is not here is SKIPPED, loudly; where uv is, it is asked to fetch it first. Exit status 1 when one fails
# or none ran, 4 when the arguments are wrong.
set -u
case ${1:-} in
-h | --help)
    echo "usage: scripts/matrix.sh [--all] [PYTEST ARGS…]"
    exit 0
    ;;
esac
here=$(cd "$(dirname "$0")" && pwd -P)
ran= failed= skipped=
for version in 3.11 3.12 3.13 3.14; do
    python=$("$here/pythons.sh" "$version") || {
        command -v uv >/dev/null 2>&1 && uv python install --no-config "$version"
        python=$("$here/pythons.sh" "$version")
    } || {
        echo "matrix: SKIPPED Python $version: there is none here" >&2
        skipped="$skipped $version"
        continue
    }
    echo "matrix: Python $version ($python)" >&2
    ran="$ran $version"
    BATON_PYTHON=$python "$here/test.sh" "$@" || {
        # Wrong arguments are as wrong on the next one.
        [ $? -ne 4 ] || exit 4
        failed="$failed $version"
    }
done
echo "matrix: ran:${ran:- none}; failed:${failed:- none}; SKIPPED:${skipped:- none}" >&2
[ -n "$ran" ] && [ -z "$failed" ]
