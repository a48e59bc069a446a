#!/bin/sh
# What JupyterHub runs as a student: bring the notebooks up to date, then serve them.
[ -z "$MEM_LIMIT" ] || ulimit -d "$((MEM_LIMIT / 1024))" # of each process, in KiB
cd || exit

# An update that fails does not keep the student from the notebooks they have: the page of
# nbgitpuller opens first, tries again and shows the reason.
gitpuller "$NOTEBOOKS" main work || export JUPYTERHUB_DEFAULT_URL="$PULL_PAGE"

export PATH="${0%/*}/bin:$PATH" # a node that answers JupyterLab at once

# Opening a notebook writes to this database, so in a full home no notebook would open.
exec jupyterhub-singleuser "$@" --NotebookNotary.db_file="${JUPYTER_RUNTIME_DIR:-/tmp}/signatures.db"
