#!/usr/bin/env bash
# Try the real install in a copy of the project: `bash tools/try_install.sh`. Takes about five minutes.
#
# Nothing to start from; ended by kill -9 half way; ended by Ctrl-C half way; then to the end; started
# again at once; and served: the learner's copy of notebook 00 must be the start page.
# (That make says the right sentences is tested in tests/tools/test_make.py, with a Python that pretends.)
set -euo pipefail
cd "$(dirname "$0")/.."
port=${PORT:-8899}
copy=$(mktemp -d)/project
mkdir "$copy"
tar -cf - --exclude=./.venv --exclude=./work --exclude=./.git . | tar -xf - -C "$copy"
cd "$copy"
echo "In $copy"
trap 'status=$?; [ -z "${lab:-}" ] || kill "$lab" 2>/dev/null || true; rm -rf "$copy"; exit $status' EXIT

unset MAKEFLAGS MAKELEVEL MFLAGS
fail() { echo "FAILED: $*"; exit 1; }

# setsid, so that a signal reaches make and all below it, as from a terminal; env, since what a
# script starts with & would ignore Ctrl-C.
stop_half_way() { # by signal $1, once torch is being unpacked
    : >log
    env --default-signal=INT setsid make .venv/ready >log 2>&1 &
    local pid=$!
    until grep -q Unpacking log && find .venv/lib -name 'libtorch_cpu*' | grep -q .; do
        kill -0 "$pid" 2>/dev/null || { cat log; fail "make ended before it could be stopped"; }
        sleep 0.2
    done
    kill "-$1" -- "-$pid"
    wait "$pid" && fail "make ended well in spite of $1"
    [ -f .venv/installing ] || fail "no mark of an interrupted install"
    cat log
}

echo "== kill -9 half way"
stop_half_way KILL
echo "== Ctrl-C half way"
stop_half_way INT
grep -q 'starting .venv anew' log || fail "the second install did not start anew"
grep -q 'The install was interrupted: ' log || fail "Ctrl-C was not answered by a sentence"
echo "== to the end, with both commands"
time make test || fail "make test"
[ ! -e work ] || fail "make test made work/"
echo "== the server"
make lab LAB_ARGS="--no-browser --port $port --IdentityProvider.token=local" >log 2>&1 &
lab=$!
first=$(basename "$(ls notebooks/00_*.ipynb)")
page() { .venv/bin/python -c '
import sys, urllib.request as u
print(u.urlopen(sys.argv[1]).geturl())' "http://127.0.0.1:$port/$1?token=local"; }
for _ in $(seq 60); do
    page >/dev/null 2>&1 && break
    sleep 0.5
done
[[ $(page) == */lab/tree/$first* ]] || { cat log; fail "the start page is $(page)"; }
page "files/$first" >/dev/null || fail "the learner's copy is not served"
grep -q Installing log && fail "make lab installed again"
echo "OK: interrupted twice, installed, tested and served."
