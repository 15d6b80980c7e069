#!/bin/sh
# Runs Earmark with the Node in this folder, wherever the folder is and whatever links lead here.
root=$(dirname -- "$(readlink -f -- "$0")")
# With the variable and the option, the server keeps less memory after large requests.
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_-1048576}"
exec "$root/node_modules/NODE_PACKAGE/bin/node" --max-semi-space-size=4 "$root/bin/earmark" "$@"
