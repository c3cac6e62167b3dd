#!/bin/sh
# guard.sh BIN processes|files: how much processor time a peer without control groups takes in 20 s while
# a job of 8 processes is idle, which have 400 children, or 200,000 empty files. It needs root.
set -eu
bin=$1 what=$2 home=$(mktemp -d)
trap 'kill $run $peer 2>/dev/null || true; wait; rm -rf "$home"' EXIT
case $what in
processes) program='for i in $(seq 50); do sleep 1000 & done' there='pgrep -fc "sleep 1000"' want=400 ;;
files) program='for i in $(seq 25000); do : > $i; done' there='find $home/h/scratch -type f | wc -l' want=200000 ;;
esac
printf '#!/bin/sh\n%s\nsleep 300\n' "$program" > "$home/program"
chmod 755 "$home/program"
unshare -m sh -c "mount -t tmpfs none /sys/fs/cgroup; exec $bin/p2pboot --home $home/h --slots 8 \
	--slot-limits memory=200MiB,disk=4GiB --listen /ip4/127.0.0.1/tcp/0 --mdns=false --nat=false" > "$home/log" 2>&1 &
peer=$! run=
until grep -q ^ready "$home/log"; do sleep 1; done
"$bin/p2prun" --home "$home/h" -n 8 "$home/program" > "$home/run" 2>&1 &
run=$!
until [ "$(eval "$there")" -ge $want ]; do sleep 1; done
sleep 3
ticks() { awk '{ print $14 + $15 }' /proc/$peer/stat; }
before=$(ticks)
sleep 20
echo "$what: $(( ($(ticks) - before) * 10 )) ms of processor time in 20 s"
