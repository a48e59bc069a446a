#!/usr/bin/env bash
# Make or renew what the hub runs from, from the project's folder: `bash classroom/install.sh`. Make calls it.
# `bash classroom/install.sh look` installs nothing, and ends in one sentence where there is no hub.
# $HUB (/opt/attention-hub) gets a Python environment of its own, `venv`, because students run it and
# cannot run one that lies under somebody's home. `installed` there holds a copy of the lists that were
# installed; as long as these are the same, nothing is installed. A failure ends in one sentence.
set -u
umask 022 # students read and run what is made here

HUB=${HUB:-/opt/attention-hub}
python=${PYTHON:-/usr/bin/python3}
log=$HUB/install.log
lists="requirements.txt classroom/requirements.txt classroom/package-lock.json"

stop() {
    printf '%s\n' "$*" >&2
    exit 1
}

as_student() { # through sh, because setpriv itself finds its command with root's rights
    setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '"$@"' sh "$@" 2>/dev/null
}

case $HUB in
/*[:\ ]* | [!/]*) stop "HUB has to be a whole path without blanks and colons, as in HUB=/srv/hub; got $HUB." ;;
esac
[ "$(id -u)" = 0 ] ||
    stop "The hub starts a server under each student's account, which only root may do: run the same command with sudo."
if [ "${1:-}" = look ]; then
    [ -f "$HUB/installed" ] && exit
    stop "There is no hub in $HUB: start it first with make hub, and name its folder with HUB=/folder if it is another."
fi
for tool in git npm node useradd chpasswd pkill setpriv prlimit; do
    command -v $tool >/dev/null ||
        stop "$tool is needed for the hub and is not installed: install it (Debian, Ubuntu: apt install git npm passwd procps util-linux python3-venv), then run the same command again."
done

[ "$(node -p 'parseInt(process.versions.node)')" -ge 18 ] ||
    stop "Node.js 18 or newer is needed, and this is $(node --version): install a newer one, then run the same command again."

# A kernel's debugger would listen on TCP, where each account of the machine could run code as the student.
without_debugger() {
    [ ! -e "$HUB"/venv/lib/python3*/site-packages/debugpy ] ||
        "$HUB/venv/bin/python" -m pip uninstall --yes debugpy >>"$log" 2>&1
}
cat $lists | cmp -s - "$HUB/installed" && "$HUB/venv/bin/python" -c '' 2>/dev/null && without_debugger && exit

mkdir -p "$HUB" && exec 9>>"$HUB/install.lock" || stop "$HUB cannot be written: name another folder with HUB=/folder."
flock --nonblock 9 || stop "The hub is being installed into $HUB already: wait until that is done."
[ ! -e "$HUB/state/lock" ] || flock --nonblock "$HUB/state/lock" true ||
    stop "A hub runs from $HUB and has to be installed anew: press Ctrl-C in its terminal, then run the same command again."
trap 'stop "Interrupted: run the same command again to go on."' INT TERM
rm -f "$HUB/installed" || stop "$HUB cannot be written: name another folder with HUB=/folder."
as_student test -x "$HUB" ||
    stop "Students cannot enter $HUB: name another folder with HUB=/folder, or let all enter it and the folders above it."
as_student "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    stop "Python 3.11 or newer is needed, and students cannot run $python, or it is older: name another with PYTHON=/usr/bin/python3.11, one that does not lie under a home."

echo "Installing the hub into $HUB (the first time takes some minutes)"
rm -rf "$HUB/venv"
"$python" -m venv "$HUB/venv" >"$log" 2>&1 ||
    stop "$python could not make $HUB/venv: install its venv module (Debian, Ubuntu: apt install python3-venv), then run the same command again; all that it said is in $log."
pip_install() {
    "$HUB/venv/bin/python" -m pip install --no-compile --disable-pip-version-check --no-input --progress-bar off "$@" >>"$log" 2>&1
}
{ [ -z "${TORCH_INDEX:-}" ] ||
    pip_install --no-deps --index-url "$TORCH_INDEX" "$(sed -n 's/^\(torch==[^ #]*\).*/\1/p' requirements.txt)"; } &&
    pip_install -r requirements.txt -r classroom/requirements.txt ||
    stop "The install failed ($(sed -n 's/^ *\(ERROR.*\)/\1/p' "$log" | tail -1)): check the network and the free disk space, then run the same command again; all that pip said is in $log."
# jsonschema imports it where it is there, to check a form of address that no server here uses. It reads a
# grammar each time: two of the three seconds that a processor needs to start a student's server.
"$HUB/venv/bin/python" -m pip uninstall --yes rfc3987-syntax >>"$log" 2>&1
without_debugger || stop "pip could not remove debugpy, with which students could enter each other's kernels: see $log."
# What students' Pythons read, who may write none of it themselves; pip would do so on one processor.
"$HUB/venv/bin/python" -m compileall -q -j 0 "$HUB/venv/lib" >>"$log" 2>&1
cp classroom/package.json classroom/package-lock.json "$HUB" &&
    (cd "$HUB" && npm ci --no-audit --no-fund --ignore-scripts) >>"$log" 2>&1 ||
    stop "npm could not install configurable-http-proxy: check the network, then run the same command again; all that npm said is in $log."
cat $lists >"$HUB/installed" || stop "The disk is full: free some disk space, then run the same command again."
echo "Installed."
