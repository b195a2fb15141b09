#!/bin/sh
# Installs Baton for this person: into $CODEX_HOME or ~/.codex. A door to `baton install`, whose options it takes:
#   --upgrade --dry-run --uninstall --project DIR --agents-only --no-config --plugin --adopt --restore
set -u
here=$(cd "$(dirname "$0")" && pwd -P) || exit 1
exec sh "$here/program.sh" baton install --from "$(dirname "$here")" "$@"
