#!/usr/bin/env bash
# Start the runs of this study, two in parallel with one thread each. If it is interrupted, start it again: it resumes.
# The official split mcd1 is read from a copy of the SCAN repository: make scan-first SCAN=DIR
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1
: "${SCAN:?set it to a copy of the SCAN repository}"

list() {
  for arch in transformer lstm cnn; do echo "--arch $arch --split simple"; done
  for seed in 0 1 2; do echo "--arch cnn --split addprim_jump --preset dessi-2019 --seed $seed"; done
  for arch in lstm transformer cnn; do
    for split in length addprim_turn_left addprim_jump template_around_right; do echo "--arch $arch --split $split"; done
  done
  echo "--arch lstm --split mcd1 --set data.root=$SCAN"
  for seed in 1 2; do
    for arch in lstm transformer; do echo "--arch $arch --split addprim_jump --seed $seed"; done
  done
  echo "--arch lstm --split addprim_turn_left --set model.dropout=0.5"
}

list | xargs -P 2 -I{} sh -c 'tfstudy run scan --study scan-first {} || exit 255'
tfstudy table scan-first
