#!/usr/bin/env bash
# Make or mend .venv, from the project's folder: `bash tools/install.sh [dev | slides]`; or remove it, with all
# caches: `bash tools/install.sh clean`; or only ask whether both could be: `may-write`. Make calls it.
# `bash tools/install.sh npm` installs what tools/npm/package-lock.json names into .venv/npm, which has
# a file `ready` when all is done; `lighthouse` does the same with tools/lighthouse.
#
# Three files in .venv say how things stand:
#   installing   an install is under way, or was interrupted: the next one starts from nothing
#   incomplete   the last install failed in an orderly way: the next one goes on from there
#   ready        all done. Its text is the project's folder, its time the start of the install, so that
#                an edit of requirements.txt made meanwhile is newer. ready-dev and ready-slides: the
#                same with [dev] and [slides], the extras of pyproject.toml.
# A failure ends in one sentence on stderr.
set -u

mode=${1:-}
here=$(pwd -P)
log=.venv/install.log
again="then run the same make command again"

exec 3>&2 # where a sentence goes, also from the trap while stderr of a command is put elsewhere
stop() {
    printf '%s\n' "$*" >&3
    exit 1
}

no_room() {
    stop "Nothing can be written to .venv: free some disk space or get the right to write there, $again."
}

remove() { # all that is named, or one sentence instead of a line for each file
    rm -rf "$@" 2>/dev/null || stop "Not everything in $here/.venv and the caches beside it can be removed: get the right to write there, or copy the project to a folder of your own, $again."
}

is_installing() { # is the shell that wrote the mark, or the pip that it left behind, still at it?
    local pid
    pid=$(cat .venv/installing 2>/dev/null)
    { [ -n "$pid" ] && ps -p "$pid" -o args= 2>/dev/null | grep -q 'tools/install\.sh'; } ||
        ps ax -o args= 2>/dev/null | pip_here="$here/.venv/bin/python -m pip" awk \
            'index($0, ENVIRON["pip_here"]) { found = 1 } END { exit !found }'
}

empty() { # start anew; the mark goes last, so that an interruption here is known as one too
    local entry
    touch .venv/installing 2>/dev/null
    for entry in .venv/* .venv/.[!.]*; do
        [ "$entry" = .venv/installing ] || remove "$entry"
    done
}

write() { # a text to a file, silently: whoever calls says what it means when that fails
    { printf '%s\n' "$1" >"$2"; } 2>/dev/null
}

give_up() { # the install failed in an orderly way: keep what is there for the next try
    if [ -f .venv/was-ready ]; then
        mv .venv/was-ready .venv/ready
        rm -f .venv/installing
    else
        mv .venv/installing .venv/incomplete
    fi
    stop "$*"
}

find_python() { # prints the first Python that is new enough; otherwise why there is none
    local candidate version best=""
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python3.14 python; fi
    for candidate; do
        version=$("$candidate" -c 'import sys
print("%d.%d.%d" % sys.version_info[:3])
sys.exit(sys.version_info < (3, 11))' 2>/dev/null) && {
            echo "$candidate"
            return 0
        }
        [ -n "$version" ] && [ -z "$best" ] && best="$candidate is Python $version"
    done
    if [ -n "$best" ]; then
        echo "Python 3.11 or newer is needed, but $best: install a newer one from python.org or your package manager, or name one with PYTHON=/path/to/python3, $again."
    else
        echo "Python 3.11 or newer is needed, but ${PYTHON:-python3} does not run: install it from python.org or your package manager, or name one with PYTHON=/path/to/python3, $again."
    fi
    return 1
}

pip_install() {
    "$here/.venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off "$@" 2>&1 |
        while IFS= read -r line; do
            { printf '%s\n' "$line" >>"$log"; } 2>/dev/null # a full disk is told once, at the end
            case $line in # the downloads that take a while, and the last step
            *Downloading*" MB)" | *Downloading*" GB)" | *"Using cached"*" MB)") echo "  ${line#"${line%%[! ]*}"}" ;;
            "Installing collected packages"*) echo "  Unpacking (a minute or two)" ;;
            esac
        done
    return "${PIPESTATUS[0]}"
}

trap 'echo >&3; stop "The install was interrupted: run the same make command again. It starts anew, with the downloads that pip has kept."' INT TERM HUP

# Before anything is touched.
for folder in "$here" "$here/.venv"; do # a read-only disk says no to root, too
    [ ! -e "$folder" ] || [ -w "$folder" ] ||
        stop "You cannot write in $folder: get the right to write there, or copy the project to a folder of your own, $again."
done
[ "$mode" = may-write ] && exit

if [ "$mode" = clean ]; then
    if [ -d .venv ] && [ ! -L .venv ]; then
        [ -z "$(ls -A .venv)" ] || [ -n "$(ls .venv/{ready,incomplete,installing,was-ready} 2>/dev/null)" ] ||
            stop "There is a .venv here that make did not make: move it away or remove it, $again."
        empty
    fi
    remove .venv build .pytest_cache .ruff_cache *.egg-info
    find . -name __pycache__ -not -path './work/*' -prune -print0 2>/dev/null |
        while IFS= read -r -d '' cache; do remove "$cache"; done
    exit "${PIPESTATUS[1]}"
fi

if [ "$mode" = npm ] || [ "$mode" = lighthouse ]; then
    for program in node npm; do
        command -v $program >/dev/null ||
            stop "Node.js with npm is needed for this, and $program is not installed: install both from nodejs.org or your package manager (Debian, Ubuntu: apt install nodejs npm), $again."
    done
    remove .venv/$mode
    { mkdir .venv/$mode && cp tools/$mode/package*.json .venv/$mode; } 2>/dev/null || no_room
    echo "Installing what tools/$mode/package.json names into .venv/$mode"
    (cd .venv/$mode && npm ci --no-audit --no-fund --ignore-scripts --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-timeout=60000) >.venv/$mode.log 2>&1 || {
        reason=$(sed -n 's/^npm error //p' .venv/$mode.log | grep -v '^code ' | head -1)
        stop "npm could not install (${reason:-see the log}): check the network and the free disk space, $again; all that npm said is in $here/.venv/$mode.log."
    }
    touch .venv/$mode/ready
    exit
fi

# What is there?
if [ -e .venv ]; then
    if is_installing; then
        stop "Another make is installing into .venv (or the one that was interrupted has left its pip running): wait until it ends, $again."
    elif [ -f .venv/installing ]; then
        echo "The last install was interrupted: starting .venv anew, with the downloads that pip has kept."
        empty
    elif [ -z "$(ls -A .venv)" ]; then
        : # nothing to lose
    elif [ ! -f .venv/ready ] && [ ! -f .venv/incomplete ]; then
        stop "There is a .venv here that make did not make: move it away or remove it, $again."
    elif ! .venv/bin/python -c '' 2>/dev/null || { [ -f .venv/ready ] && [ "$(cat .venv/ready)" != "$here" ]; }; then
        echo ".venv was made in another folder, or its Python is gone: starting it anew."
        empty
    fi
fi

python=""
if [ ! -f .venv/incomplete ] && [ ! -f .venv/ready ]; then
    python=$(find_python) || stop "$python"
fi

mkdir -p .venv 2>/dev/null || no_room
write $$ .venv/installing || {
    rm -f .venv/installing # without it, what was ready stays ready
    no_room
}
[ -n "$mode" ] && [ -f .venv/ready ] && mv .venv/ready .venv/was-ready
rm -f .venv/ready .venv/incomplete ".venv/ready-${mode:-dev}"
[ -n "$mode" ] || rm -f .venv/ready-slides

if [ -n "$python" ]; then
    echo "Making .venv with $python"
    { "$python" -m venv .venv >"$log" 2>&1; } 2>/dev/null || {
        reason=$(grep -v '^ *$' "$log" 2>/dev/null | tail -1)
        empty
        rm -rf .venv 2>/dev/null
        stop "$python could not make .venv (${reason:-it said nothing}): install its venv module (Debian, Ubuntu: apt install python3-venv) or free disk space, $again."
    }
fi

{ : >"$log"; } 2>/dev/null
extra=""
if [ -n "$mode" ]; then
    extra="[$mode]"
    case $mode in
    dev) echo "Installing ruff, codespell, import-linter, playwright and jupyterlab-slideshow into .venv" ;;
    *) echo "Installing jupyterlab-slideshow into .venv" ;;
    esac
else
    echo "Installing PyTorch, JupyterLab and what else requirements.txt names into .venv (the first time takes some minutes)"
fi
export PIP_USER=0 # a user's own pip setting that does not go with a .venv
{
    { [ -n "$mode" ] || [ -z "${TORCH_INDEX:-}" ] ||
        # Without its dependencies: the next line takes them from the usual index.
        pip_install --no-deps --index-url "$TORCH_INDEX" "$(sed -n 's/^\(torch==[^ #]*\).*/\1/p' requirements.txt)"; } &&
        pip_install -r requirements.txt -e ".$extra"
} || {
    reason=$(sed -n 's/^ *\(ERROR.*\)/\1/p' "$log" 2>/dev/null | tail -1)
    give_up "The install failed (${reason:-see the log}): check the network and the free disk space, $again; all that pip said is in $log."
}

if [ -n "$mode" ]; then
    write "$here" .venv/here || give_up "The disk is full: free some disk space, $again."
    mv .venv/was-ready .venv/ready
    mv .venv/here ".venv/ready-$mode"
    rm -f .venv/installing
else
    write "$here" .venv/here || give_up "The disk is full: free some disk space, $again."
    touch -r .venv/installing .venv/here
    mv .venv/here .venv/ready
    rm -f .venv/installing
fi
echo "Installed."
