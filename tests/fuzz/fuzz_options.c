/* Option values: the first byte says of which option. */
#include "spank/options.h"
#include "tests/fuzz/fuzz.h"

static bool leads_out(const char *path)
{
    return *path == '/' || strcmp(path, "..") == 0 || strncmp(path, "../", 3) == 0 ||
           strstr(path, "/../") != NULL ||
           (strlen(path) >= 3 && strcmp(path + strlen(path) - 3, "/..") == 0);
}

/* Neither as written nor with the names that it stands for. */
static void check_out(const char *text)
{
    const hpct_spec_out_names names = {
        .job = 42, .array = {true, 40, 2}, .step = "batch", .node = 3, .host = "n3", .task = 7};
    hpct_spec_out_list list;
    if (hpct_spec_out_list_parse(text, &list) != HPCT_OK)
        return;
    hpct_spec_out_list_check_array(&list, &names.array, names.job, text);
    for (int i = 0; i < list.count; i++) {
        char *src = hpct_spec_out_name(list.entries[i].src, &names);
        char *dst = hpct_spec_out_name(list.entries[i].dst, &names);
        if (src == NULL || dst == NULL || *src == '\0' || *dst == '\0' ||
            leads_out(list.entries[i].src) || leads_out(src))
            abort();
        free(src);
        free(dst);
    }
    hpct_spec_out_list_free(&list);
}

static void check_stage(const char *text)
{
    hpct_spec_stage_list list;
    if (hpct_spec_stage_list_parse(text, &list) != HPCT_OK)
        return;
    must(list.count >= 1);
    for (int i = 0; i < list.count; i++) {
        const char *dst = list.entries[i].dst;
        if (*dst == '\0' || strstr(dst, "//") != NULL || leads_out(dst))
            abort();
    }
    hpct_spec_stage_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = strndup((const char *) data + 1, size - 1);
    int which = data[0] - '0';
    if (which >= 0 && which < HPCT_SPANK_NUM_OPTIONS) {
        if (hpct_spank_option_check((hpct_spank_option) which, text) != HPCT_OK &&
            *hpct_last_error() == '\0')
            abort();
        if (which == HPCT_SPANK_OPTION_STAGE)
            check_stage(text);
        if (which == HPCT_SPANK_OPTION_STAGE_OUT)
            check_out(text);
    }
    free(text);
    return 0;
}
