/* hpctrain/strategy.h - how the ranks share the work of a step. */
#ifndef HPCTRAIN_STRATEGY_H
#define HPCTRAIN_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How gradients travel between the ranks; they are added up in fp32 whatever travels. bf16 and fp16
 * halve the bytes and round each number twice, on its way to the rank that adds up and on the way
 * back: to 8 significant bits (bf16), or to 11 (fp16, with a factor for each message that brings
 * its largest number to 2^15, so that nothing overflows; what is below 2^-39 of that is lost). */
typedef enum hpct_wire { HPCT_WIRE_FP32, HPCT_WIRE_BF16, HPCT_WIRE_FP16 } hpct_wire;

/* Zero means the default named; all ranks give the same. */
typedef struct hpct_strategy_options {
    /* "auto" (the default): the fastest of those that change nothing but the order of sums, found
     * by a few steps of each before training, on made-up pictures; which it is may differ between
     * runs, and so may the last bits of their results. Or one by name:
     * "multi-worker-mirrored": every rank has the whole model and a slice of each global batch; the
     * gradients are summed over the ranks.
     * "hybrid": every rank reads the whole global batch and computes a part of the large Dense
     * layers and of what feeds them, so that their gradients need not travel; exact,
     * BatchNormalization being over the global batch. */
    const char *name;
    /* How "hybrid" splits a Dense: "rows" (the layers before it by channels), "columns" (the layers
     * before it are computed by all ranks, fewer bytes travel), "auto" (the default): what is
     * predicted to be faster at 1 Gb/s. */
    const char *hybrid_form;
    /* What changes the results beyond the order of sums is refused (HPCT_ERR_USAGE) without this.
     */
    bool allow_lossy;
    hpct_wire wire; /* other than fp32: with allow_lossy alone */
    /* Bytes of gradients in one reduction. Default: from the network as it is measured then, so
     * that with more than two ranks the last bits may differ from run to run. */
    size_t bucket_bytes;
} hpct_strategy_options;

#ifdef __cplusplus
}
#endif
#endif
