# A file's kernels from its PTX, which has the threads of a block, and what ptxas -v says of them: see resources.
#
# Occupancy as CUDA's occupancy calculator has it, for compute capability 7.0 and later: registers are given to warps in
# units of 256, to four schedulers; shared memory to blocks in units of 128 bytes.

function up(number, unit) { return int((number + unit - 1) / unit) * unit }

function least(a, b) { return a < b ? a : b }

function occupancy(threads, registers, shared,    warps, blocks, room) {
    warps = up(threads, 32) / 32
    blocks = least(most_blocks, int(most_threads / 32 / warps))
    room = int(most_registers / up(32 * registers, 256))
    blocks = least(blocks, int((room - room % 4) / warps))
    if (shared + reserved > 0)
        blocks = least(blocks, int((shared_of_block + reserved) / up(shared + reserved, 128)))
    return int(100 * blocks * warps * 32 / most_threads)
}

# Threads before the assembler's words: ".maxntid 128, 8, 1", or without those that are 1.
FNR == NR && /^[ \t]*(\.visible )?\.(entry|weak)/ { sub(/.*\.entry /, ""); sub(/\(.*/, ""); entry = $1; next }
FNR == NR && /^\.maxntid/ { gsub(/,/, ""); threads[entry] = $2 * (NF > 2 ? $3 : 1) * (NF > 3 ? $4 : 1); next }
FNR == NR { next }

/Compiling entry function/ { split($0, quoted, "'"); entry = quoted[2]; stack = stores = loads = 0; next }
/bytes stack frame/ { stack = $1; stores = $5; loads = $9; next }
/Used [0-9]+ registers/ {
    registers = $5
    shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART) + 0 : 0
    bounded = entry in threads # else it is launched as one block of one warp
    printf "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", file, arch, entry, bounded ? threads[entry] : 32, registers, stack,
        stores, loads, shared, bounded ? occupancy(threads[entry], registers, shared) : "-"
    count++
}
END {
    if (count == 0) {
        print file ": no kernels" >"/dev/stderr"
        exit 1
    }
}
