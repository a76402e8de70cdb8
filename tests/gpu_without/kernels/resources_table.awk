# Extremes of each file's kernels, for each architecture: see resources.
function larger(a, b) { return a > b ? a : b }

{
    if (!($1 in files)) {
        files[$1] = ++number
        name[number] = $1
    }
    at = $1 SUBSEP $2
    kernels[at]++
    registers[at] = larger(registers[at], $5)
    bytes[at] = larger(bytes[at], $6)
    shared[at] = larger(shared[at], $9)
    if ($10 != "-" && !(at in least && least[at] <= $10 + 0))
        least[at] = $10 + 0
}
END {
    count = split(archs, arch, " ")
    printf "| file | kernels |"
    for (i = 1; i <= count; i++)
        printf " sm_%s |", arch[i]
    printf "\n|---|---|"
    for (i = 1; i <= count; i++)
        printf "---|"
    for (f = 1; f <= number; f++) {
        printf "\n| `%s` | %d |", name[f], kernels[name[f], arch[1]]
        for (i = 1; i <= count; i++) {
            at = name[f] SUBSEP arch[i]
            printf " %d, %d, %d, %s |", registers[at], bytes[at], shared[at], at in least ? least[at] " %" : "–"
        }
    }
    print ""
}
