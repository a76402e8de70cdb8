# tests/pictures.sh - a data set of a few real pictures. Sourced; not a test.
# shellcheck shell=bash

# first_pictures DIR: the first 256 training and 64 test pictures of Fashion-MNIST, as IDX files.
first_pictures() {
    local all=/usr/share/datasets/fashion-mnist
    [ -d $all ] || skip_all "$all is missing: apt-get install dataset-fashion-mnist"
    mkdir -p "$1" || return
    first() { # NAME HEADER-IN-BYTES NEW-HEADER BYTES
        { printf '%b' "$3"; zcat "$all/$1.gz" | tail -c +$(($2 + 1)) | head -c "$4"; } >"$dir/$1"
    }
    local dir=$1
    first train-images-idx3-ubyte 16 '\0\0\010\03\0\0\01\0\0\0\0\034\0\0\0\034' $((256 * 784))
    first train-labels-idx1-ubyte 8 '\0\0\010\01\0\0\01\0' 256
    first t10k-images-idx3-ubyte 16 '\0\0\010\03\0\0\0\0100\0\0\0\034\0\0\0\034' $((64 * 784))
    first t10k-labels-idx1-ubyte 8 '\0\0\010\01\0\0\0\0100' 64
}
