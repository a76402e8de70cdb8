# tests/rounding.sh - how near the losses of two runs must be that compute the same in another order: on other numbers of ranks, by
# other instructions. Sourced; not a test.
# shellcheck shell=bash
#
# A float32 operation rounds by at most u = 2^-24. Roundings in another order differ independently, and the difference of N of them in
# a chain is at most 4 u sqrt(N) but for one in some thousand (Higham and Mary, A New Approach to Probabilistic Rounding Error
# Analysis, 2019). What a step adds to the chain is its longest sum: of a convolution's gradient, over the batch and all positions.
# Where this is far above what is seen, a fault still is further above: a step or a rank's batch more or less changes losses by a
# hundredth and more.

# Positions of the first convolution of mnist-cnn and mnist-convnet.
# shellcheck disable=SC2034
positions=$((26 * 26))

# near ONE OTHER STEPS TERMS: two files with a loss on each of STEPS lines, of steps whose longest sum has TERMS terms. Prints nothing, or
# what is wrong.
near() {
    paste -d' ' "$1" "$2" | awk -v steps="$3" -v terms="$4" '
        $1 !~ /^[0-9][-+.e0-9]*$/ || $2 !~ /^[0-9][-+.e0-9]*$/ || NF != 2 { print "line " NR ": " $0; exit }
        { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
        END { bound = 4 * 2 ^ -24 * sqrt(steps * terms)
            if (NR != steps || worst > bound) print NR " of " steps " losses, " worst + 0 " apart, more than " bound }'
}
