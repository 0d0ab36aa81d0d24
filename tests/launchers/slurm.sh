#!/usr/bin/env bash
# A Slurm of two nodes on this machine, in one folder: `slurm.sh up DIR` and `slurm.sh down DIR`; needs root and Debian.
#
# The packages are unpacked in DIR and nothing is installed: an `srun` on the PATH makes Lightning warn in ordinary
# runs. With DIR/bin on PATH, sbatch and the others work. `down` ends every process that runs from DIR and removes it.
set -euo pipefail
action=${1:?up or down} dir=${2:?a folder}
libraries=$dir/root/usr/lib/$(uname -m)-linux-gnu

unpacked() {
  mkdir -p "$dir"/{archives/partial,root,bin,spool,state,run}
  apt-get install -qq --yes --no-install-recommends --download-only -o Dir::Cache::archives="$dir/archives" \
    slurm-wlm munge > "$dir/apt.log" 2>&1 || { cat "$dir/apt.log"; exit 1; }
  for archive in "$dir"/archives/*.deb; do dpkg -x "$archive" "$dir/root"; done
  rm -rf "$dir/archives"
  for program in "$dir"/root/usr/bin/* "$dir"/root/usr/sbin/*; do # each finds its libraries and its configuration
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s SLURM_CONF=%s exec %s "$@"\n' \
      "$libraries:$libraries/slurm-wlm" "$dir/slurm.conf" "$program" > "$dir/bin/$(basename "$program" -wlm)"
  done
  chmod +x "$dir"/bin/*
}

configured() {
  local host
  host=$(hostname -s)
  cat > "$dir/slurm.conf" <<CONF
ClusterName=tests
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=17000
SlurmUser=root
AuthType=auth/munge
# a requeued job waits for as long as a credential lives
AuthInfo=socket=$dir/run/munge,cred_expire=10
PluginDir=$libraries/slurm-wlm
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
SlurmdTimeout=10
KillWait=5
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17001-17002] CPUs=4 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES State=UP OverSubscribe=EXCLUSIVE
CONF
  echo "CgroupPlugin=cgroup/v1" > "$dir/cgroup.conf"
}

started() {
  head -c 128 /dev/urandom > "$dir/run/munge.key"
  chmod 400 "$dir/run/munge.key"
  "$dir/bin/munged" --force --socket="$dir/run/munge" --key-file="$dir/run/munge.key" --log-file="$dir/munged.log" \
    --pid-file="$dir/run/munged.pid" --seed-file="$dir/run/munged.seed"
  "$dir/bin/slurmctld"
  for node in n1 n2; do "$dir/bin/slurmd" -N "$node" -d "$dir/bin/slurmstepd"; done
  for _ in $(seq 100); do
    [ "$("$dir/bin/sinfo" --noheader --format=%D --states=idle 2> "$dir/sinfo.log")" = 2 ] && return
    sleep 0.2
  done
  tail -n 5 "$dir"/*.log
  exit 1
}

cancelled() { # all jobs, with the processes that Slurm looks after; a lost node's are gone already
  timeout 10 "$dir/bin/scancel" --state=pending,running --user="$(id -un)" 2> /dev/null || return 0
  for _ in $(seq 75); do
    [ -z "$(timeout 10 "$dir/bin/squeue" --noheader --states=running,completing 2> /dev/null)" ] && return
    sleep 0.2
  done
}

processes() { # all whose program is in DIR
  for process in /proc/[0-9]*; do
    case "$(readlink "$process/exe" || true)" in "$dir"/*) basename "$process" ;; esac
  done
}

case $action in
  up)
    unpacked && configured && started
    ;;
  down)
    if [ -x "$dir/bin/scancel" ]; then cancelled; fi
    for signal in TERM KILL; do
      for process in $(processes); do kill -"$signal" "$process" 2> /dev/null || true; done
      for _ in $(seq 25); do [ -z "$(processes)" ] && break || sleep 0.2; done
    done
    rm -rf "$dir"
    ;;
  *)
    echo "slurm.sh up DIR, or slurm.sh down DIR" >&2
    exit 2
    ;;
esac
