/* spank/gpu: --hpc-train-bind and which of the visible GPUs a task takes. */
#include "spank/gpu.h"
#include "tests/unit/cases.h"

/* Number: the local rank; with: CUDA_VISIBLE_DEVICES. */
static hpct_status choose(const parse_case *c, char *got, size_t size)
{
    hpct_spank_gpu_bind bind = {0};
    char *gpu = NULL;
    assert_int_equal(hpct_spank_gpu_bind_parse(c->text, &bind), HPCT_OK);
    hpct_status status = hpct_spank_gpu_choose(&bind, c->with, c->number, &gpu);
    snprintf(got, size, "%s", gpu != NULL ? gpu : "(none)");
    free(gpu);
    hpct_spank_gpu_bind_free(&bind);
    return status;
}

TEST(gpus_are_chosen_by_local_rank_or_map)
{
    static const parse_case cases[] = {
        {"rank", HPCT_OK, "0", 0, "0,1"},
        {"rank", HPCT_OK, "1", 1, "0,1"},
        {"rank", HPCT_OK, "5", 3, "2,5"},
        {"rank", HPCT_OK, "MIG-2b", 1, "GPU-1a,MIG-2b"},
        {"rank", HPCT_OK, "3", 7, "3"},
        {"rank", HPCT_OK, "(none)", 0, NULL},
        {"rank", HPCT_OK, "(none)", 0, ""},
        {"rank", HPCT_OK, "(none)", 0, "NoDevFiles"},
        {"closest", HPCT_OK, "6", 3, "4,6"}, /* where nothing better is known */
        {"none", HPCT_OK, "(none)", 1, "0,1"},
        {"map:1,0", HPCT_OK, "6", 0, "4,6"},
        {"map:1,0", HPCT_OK, "6", 2, "4,6"},
        {"map:0,2", HPCT_ERR_CONFIG, NULL, 1, "4,6"},
        {"map:0", HPCT_ERR_CONFIG, NULL, 0, NULL},
    };
    RUN_CASES(choose, cases);
}
