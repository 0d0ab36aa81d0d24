#!/usr/bin/env bash
# The runs of this study, two at a time on one thread each. Stopped and started again, it goes on where it was.
# The official mcd1 split is read from a copy of the SCAN repository: SCAN=DIR bash results/scan-first/runs.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1

list() {
  for arch in transformer lstm cnn; do echo "--arch $arch --split simple"; done
  for seed in 0 1 2; do echo "--arch cnn --split addprim_jump --preset dessi-2019 --seed $seed"; done
  for arch in lstm transformer cnn; do
    for split in length addprim_turn_left addprim_jump template_around_right; do echo "--arch $arch --split $split"; done
  done
  if [ -n "${SCAN:-}" ]; then echo "--arch lstm --split mcd1 --set data.root=$SCAN"; fi
  for seed in 1 2; do
    for arch in lstm transformer cnn; do echo "--arch $arch --split addprim_jump --seed $seed"; done
  done
}

list | xargs -P 2 -I{} sh -c 'tfstudy run scan --study scan-first {} || exit 255'
tfstudy table scan-first
