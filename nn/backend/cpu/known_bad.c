#include "nn/backend/cpu/known_bad.h"

#include <string.h>

#define ANY 999999 /* later releases than those tried are taken to be wrong, too */

/* ---- products ---- */

/* All of them: bf16, AMX, more than one tile along K, and K not a whole number of tiles. */
static const struct {
    int first, last; /* versions */
    int remainder;   /* K modulo HPCT_CPU_PRODUCT_TILE; -1: any but 0 */
    const char *reference;
} products[] = {
    /* The tiles keep the configuration of whole blocks in the last one along K, which is rounded up
     * to a whole block: SIGILL, or wrong numbers with two threads and more. */
    {20600, 20703, 31, "oneDNN #1661, corrected in 2.7.4"},
    {30000, 30099, 31, "oneDNN #1661, corrected in 3.1"},
    /* The last tile of a row of A continues into the next row, and relies on zeros in B: a NaN or
     * an infinite number there, of another sample, makes this row's results NaN, too. */
    {30700, 31499, -1, "oneDNN #5717, corrected after 3.14"},
};
#define NUM_PRODUCTS (sizeof products / sizeof *products)

size_t hpct_cpu_product_depth(const hpct_cpu_onednn *library, size_t k)
{
    size_t remainder = k % HPCT_CPU_PRODUCT_TILE;
    if (!library->amx || k < HPCT_CPU_PRODUCT_TILE || remainder == 0)
        return k;
    for (size_t i = 0; i < NUM_PRODUCTS; i++) {
        bool concerned =
            products[i].first <= library->version && library->version <= products[i].last;
        if (concerned && (products[i].remainder < 0 || products[i].remainder == (int) remainder))
            return k - remainder + HPCT_CPU_PRODUCT_TILE;
    }
    return k;
}

/* ---- convolutions: neither fault of products, as their tiles are configured where they differ
 * (#1661), and only pixels of one picture get into each other (#5717: batches of 1) ---- */

static bool is_strided(const hpct_cpu_conv_choice *c)
{
    return c->stride_h > 1 || c->stride_w > 1;
}

static bool has_partial_vectors(const hpct_cpu_conv_choice *c)
{
    return is_strided(c) && (c->in_c % 8 != 0 || c->out_c % 8 != 0);
}

static bool has_wide_strides(const hpct_cpu_conv_choice *c)
{
    return c->stride_h > 2 || c->stride_w > 2 || (c->stride_w > 1 && c->out_w == 1);
}

static bool has_half_a_pair(const hpct_cpu_conv_choice *c)
{
    return c->bf16 && c->inner % 2 != 0;
}

static bool steps_out_of_the_picture(const hpct_cpu_conv_choice *c)
{
    return c->inner == 0 && c->in_w < c->stride_w;
}

static const struct {
    int first, last;         /* versions */
    const char *begin, *isa; /* of its name */
    bool (*concerns)(const hpct_cpu_conv_choice *choice);
    const char *reference;
} convolutions[] = {
    {20600, ANY, "jit_1x1:avx2", "", has_partial_vectors, "wrong gradients: 2.6.3, 3.12.1"},
    {30000, ANY, "brg", "amx", has_wide_strides, "wrong results: 3.7.2, 3.12.1"},
    /* bf16 is read in pairs of channels: the last pair has a number of the next pixel, or of what
     * lies behind the pictures, times a zero in the kernel. */
    {20600, ANY, "brg", "", has_half_a_pair,
     "NaN of the neighbour, SIGSEGV with 575 channels: 2.6.3"},
    /* The kernel's gradient has what was in the scratchpad before. */
    {20600, ANY, "jit_bf16", "", steps_out_of_the_picture, "wrong gradients: 2.6.3"},
};
#define NUM_CONVOLUTIONS (sizeof convolutions / sizeof *convolutions)

bool hpct_cpu_conv_is_known_bad(const hpct_cpu_onednn *library, const hpct_cpu_conv_choice *choice)
{
    for (size_t i = 0; i < NUM_CONVOLUTIONS; i++) {
        const char *begin = convolutions[i].begin;
        if (convolutions[i].first <= library->version && library->version <= convolutions[i].last &&
            strncmp(choice->name, begin, strlen(begin)) == 0 &&
            strstr(choice->name, convolutions[i].isa) != NULL && convolutions[i].concerns(choice))
            return true;
    }
    return false;
}
