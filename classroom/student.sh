#!/bin/sh
# What JupyterHub runs as a student: bring the notebooks up to date, then serve them.
# An update that fails (a full disk) does not keep the student from the notebooks they have: the
# page of nbgitpuller opens first, tries again and shows the reason.
[ -z "$MEM_LIMIT" ] || ulimit -d "$((MEM_LIMIT / 1024))" # of each process, in KiB

cd || exit
gitpuller "$NOTEBOOKS" main work || export JUPYTERHUB_DEFAULT_URL="$PULL_PAGE"
exec jupyterhub-singleuser "$@"
