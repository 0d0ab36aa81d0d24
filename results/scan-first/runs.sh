#!/usr/bin/env bash
# The runs of this study, two at a time on one thread each. Stopped and started again, it goes on where it was.
# The official mcd1 split is read from a copy of the SCAN repository: SCAN=DIR bash results/scan-first/runs.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1

list() {
  for arch in transformer lstm cnn; do echo "--arch $arch --split simple"; done
  for arch in lstm cnn transformer; do
    for seed in 0 1 2; do echo "--arch $arch --split addprim_jump --seed $seed"; done
    for split in length addprim_turn_left template_around_right; do echo "--arch $arch --split $split"; done
  done
  for seed in 0 1 2; do echo "--arch cnn --split addprim_jump --preset dessi-2019 --seed $seed"; done
  echo "--arch cnn --split template_around_right --preset dessi-2019"
  echo "--arch cnn --split length --preset dessi-2019"
  if [ -n "${SCAN:-}" ]; then
    for arch in lstm transformer cnn; do echo "--arch $arch --split mcd1 --set data.root=$SCAN"; done
  fi
}

list | xargs -P 2 -I{} sh -c 'tfstudy run scan --study scan-first {} || exit 255'
tfstudy table scan-first
