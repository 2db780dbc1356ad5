#!/usr/bin/env bash
# Whether two trees compute the same: bench/compare_trees.sh OLD_BUILD NEW_BUILD [WORK]
#
# Trains with the programs of both builds and compares the digests of the variables and, but for renamed words, the printed
# plans: mnist_softmax 1,000 steps, fashion_lenet 300, cifar_resnet (resnet_v1_20, on CIFAR files made from Fashion-MNIST) 50 in
# float32 and in bfloat16; each on 1 rank x 1 device, 2 x 1 and 1 x 2, with 4 logical replicas. Needs dataset-fashion-mnist, the
# placements' cores and python3. Exit status 1 if anything differs.
set -euo pipefail
old=$(realpath "$1") new=$(realpath "$2")
work=${3:-$(mktemp -d)}
mnist=/usr/share/datasets/fashion-mnist
status=0

train() {  # BUILD LOG_DIR RANKS DEVICES PROGRAM FLAGS...: prints the digest
  local build=$1 log_dir=$2 ranks=$3 devices=$4 program=$5
  shift 5
  local command=("$build/bin/$program" --train_url="$log_dir" --num_devices="$devices" --threads="$devices"
    --logical_replicas=4 --log_level=error "$@")
  ((ranks == 1)) || command=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$ranks" "${command[@]}")
  rm -rf "$log_dir"
  "${command[@]}" >"$log_dir.log" 2>&1 || { tail -5 "$log_dir.log" >&2; return 1; }
  "$new/bin/mox" checkpoint digest "$log_dir"
}

# A plan without what the programs themselves ask for since (output_info: argmax, softmax), without the numbers that shift with
# it, and in the newer words.
plain_plan() {
  sed -E -e '/^ *[0-9]+ +(argmax|softmax) /d; /^ *results /d; s/^ *(step|#) +op /op /' \
    -e 's/^ *([0-9]+ )?(steps|instructions) .*/instructions/; s/^ *[0-9]+ +//; s/first in (step|instruction) [0-9]+//' \
    -e 's/_(backprop|backward)/_gradient/g; s/conv2d_gradient_(input|filter)/conv2d_\1_gradient/g; s/ +/ /g' "$1"
}

compare() {  # NAME PROGRAM FLAGS...
  local name=$1 program=$2
  shift 2
  for build in old new; do
    "${!build}/bin/$program" --print_plan --log_level=error --threads=1 --logical_replicas=4 "$@" >"$work/$name.$build.plan"
    plain_plan "$work/$name.$build.plan" >"$work/$name.$build.plain"
  done
  if cmp -s "$work/$name.old.plain" "$work/$name.new.plain"; then
    echo "$name plan: equal, $(wc -l <"$work/$name.new.plan") lines"
  else
    echo "$name plan: DIFFERENT, $(diff "$work/$name.old.plain" "$work/$name.new.plain" | grep -c '^[<>]') lines"
    status=1
  fi
  for placement in "1 1" "2 1" "1 2"; do
    local before after verdict=equal
    read -r ranks devices <<<"$placement"
    before=$(train "$old" "$work/$name.old" "$ranks" "$devices" "$program" "$@")
    after=$(train "$new" "$work/$name.new" "$ranks" "$devices" "$program" "$@")
    [[ $before == "$after" ]] || { verdict=DIFFERENT; status=1; }
    echo "$name ${ranks}x$devices: $verdict ${before:0:16} ${after:0:16}"
  done
}

mkdir -p "$work"
[[ -d $work/cifar ]] || python3 "$(dirname "$0")/../models/cifar_resnet/make_cifar_files.py" "$work/cifar" --samples 2000 >/dev/null
compare softmax mnist_softmax --data_url="$mnist" --max_number_of_steps=1000
compare fashion_lenet fashion_lenet --data_url="$mnist" --max_number_of_steps=300 --inter_mode=none
compare resnet_fp32 cifar_resnet --data_url="$work/cifar/cifar-10-batches-bin" --max_number_of_steps=50 --batch_size=32 --inter_mode=none
compare resnet_bf16 cifar_resnet --data_url="$work/cifar/cifar-10-batches-bin" --max_number_of_steps=50 --batch_size=32 --inter_mode=none --precision=bf16
exit $status
