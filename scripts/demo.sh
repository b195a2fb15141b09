#!/bin/sh
# The main job on a small repository with the embedded model: no login, nothing to set up.
set -eu
exec "$(dirname "$0")/baton" demo "$@"
