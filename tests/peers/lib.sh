# tests/peers/lib.sh - a Python with the frameworks to compare with. Sourced; not a test.
# shellcheck shell=bash
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
export TF_CPP_MIN_LOG_LEVEL=3

# needs MODULE…: skips the test where $python does not have them.
needs() {
    local modules="$*"
    "$python" -c "import ${modules// /, }" 2>/dev/null && return
    echo "1..0 # SKIP $python has no ${modules// / or no }"
    exit 0
}

# peer SCRIPT ARGUMENT…: runs it in place of the test, without TensorFlow's remarks.
peer() { exec "$python" "$top_srcdir/tests/peers/$1" "${@:2}" 2> >(grep -v -e cuda -e '^WARNING: All log' -e '^[EIW]0000' >&2); }
