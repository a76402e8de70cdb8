/* checkpoint DIR: saves one checkpoint in two parts with all types and a tensor in slices, for
 * checkpoint.py. */
#include "tests/unit/agent/checkpoint/folder.h"

#include <hpctrain/checkpoint.h>

int main(int argc, char **argv)
{
    float f32[] = {1.5f, -2, 3.25f};
    double f64[] = {1e300, -0.5, 3, 4};
    int64_t i64[] = {INT64_MIN, INT64_MAX};
    uint64_t u64[] = {UINT64_MAX};
    unsigned char u8[] = {0, 128, 255};
    const hpct_ckpt_store_tensor first[] = {
        {"bytes", HPCT_CKPT_STORE_U8, 1, {3}, 0, 0, u8},
        {"weights/f", HPCT_CKPT_STORE_F32, 2, {1, 3}, 0, 0, f32},
        {"rows", HPCT_CKPT_STORE_F64, 2, {1, 2}, 0, 2, f64},
        {"empty", HPCT_CKPT_STORE_F32, 2, {0, 3}, 0, 0, NULL}};
    const hpct_ckpt_store_tensor second[] = {
        {"rows", HPCT_CKPT_STORE_F64, 2, {1, 2}, 1, 2, f64 + 2},
        {"integers", HPCT_CKPT_STORE_I64, 1, {2}, 0, 0, i64},
        {"counter", HPCT_CKPT_STORE_U64, 0, {0}, 0, 0, u64}};
    static const char state[] = "{\"epoch\": 3, \"class_names\": [\"cat\", \"dog\"]}";
    hpct_ckpt_store *store;
    hpct_ckpt_store_file files[2];
    char path[4096];
    if (argc != 2 || hpct_ckpt_store_open(&store, argv[1], 1, NULL, NULL) != HPCT_OK ||
        hpct_ckpt_store_write_part(argv[1], 7, 0, first, 4, &files[0]) != HPCT_OK ||
        hpct_ckpt_store_write_part(argv[1], 7, 1, second, 3, &files[1]) != HPCT_OK ||
        hpct_ckpt_store_commit(store, 7, state, files, 2, true) != HPCT_OK)
        return 1;
    hpct_ckpt_store_close(store);
    snprintf(path, sizeof path, "%s/exported.safetensors", argv[1]);
    return (int) hpct_checkpoint_export(argv[1], path, stderr);
}
