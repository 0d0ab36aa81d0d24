#!/usr/bin/env bash
# Start the runs of this study, two in parallel with one thread each. If it is interrupted, start it again: it resumes.
# The corpus is Multi30k (Elliott et al. 2016), in a folder with {train,dev,test}.tsv.gz: make tasks-first MULTI30K=DIR
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1
: "${MULTI30K:?set it to a folder with the corpus}"

list() {
  for arch in transformer lstm cnn; do
    echo "sorting --arch $arch"
    echo "arithmetic --arch $arch --set data.format=reversed"
    echo "parentheses --split completion --arch $arch"
    echo "copying --arch $arch"
  done
  for arch in lstm transformer; do
    echo "translation --preset untuned --arch $arch --split corpus --set data.root=$MULTI30K --set data.source_language=en --set data.target_language=de --set data.train_pairs=5000"
  done
  for pairs in 2000 5000; do
    echo "translation --preset untuned --arch lstm --set data.train_pairs=$pairs --set data.subword_vocab_size=2000 --set train.steps=2500"
    echo "translation --preset untuned --arch transformer --set data.train_pairs=$pairs"
  done
  echo "translation --preset untuned --arch transformer --set data.train_pairs=500 --set train.steps=1600"
  for dropout in 0.3 0.5; do
    echo "translation --preset untuned --arch lstm --set data.train_pairs=500 --set train.steps=2500 --set model.dropout=$dropout"
  done
}

list | xargs -P 2 -I{} sh -c 'tfstudy run {} --study tasks-first || exit 255'
# Decode the same weights greedily.
for arch in lstm transformer; do
  tfstudy run translation --preset untuned --arch $arch --split corpus --set data.root="$MULTI30K" --set data.source_language=en --set data.target_language=de \
    --set data.train_pairs=5000 --set decode.method=greedy --set decode.length_penalty=0 --study tasks-first
done
tfstudy table tasks-first
