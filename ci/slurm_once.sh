#!/usr/bin/env bash
# Runs a gate (ci/gate/slurm.sh and its arguments) on a Slurm of one node that lives as long as the gate. Needs root, and Debian's or Ubuntu's
# packages slurm-wlm and munge. Not a part of the tests: it starts daemons.
set -euo pipefail
home=$(dirname "$(realpath "$0")")/..
work=$(mktemp -d /tmp/facts-slurm.XXXXXX)
node=$(hostname -s)
export SLURM_CONF=$work/slurm.conf
pids=()
stop() {
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait || true
    rm -rf "$work"
}
trap stop EXIT

cat >"$SLURM_CONF" <<END
ClusterName=facts
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CryptoType=crypto/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobCompType=jobcomp/none
ReturnToService=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=60 State=UP
END
mkdir -p "$work/state" "$work/spool" "$work/munge"
chmod 755 "$work"
dd if=/dev/urandom of="$work/munge/key" bs=1024 count=1 status=none
chmod 700 "$work/munge"; chmod 600 "$work/munge/key"
munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge.socket" --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" >"$work/munged.log" 2>&1 & pids+=($!)
slurmctld -D -f "$SLURM_CONF" >"$work/slurmctld.log" 2>&1 & pids+=($!)
slurmd -D -f "$SLURM_CONF" -N "$node" >"$work/slurmd.log" 2>&1 & pids+=($!)
for _ in $(seq 60); do
    [[ $(sinfo -h -o %T 2>/dev/null) == idle ]] && break
    sleep 0.5
done
if [[ $(sinfo -h -o %T) != idle ]]; then
    tail -n 20 "$work"/*.log >&2
    exit 3
fi
sinfo
status=0
"$home/ci/gate/slurm.sh" "$@" || status=$?
exit "$status"
