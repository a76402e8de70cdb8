/* Option values: the first byte says of which option. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spank/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stage(const char *text)
{
    hpct_stage_list list;
    if (hpct_stage_list_parse(text, &list) != HPCT_OK)
        return;
    if (list.count < 1)
        abort();
    for (int i = 0; i < list.count; i++) {
        const char *dst = list.entries[i].dst;
        if (*dst == '\0' || *dst == '/' || strstr(dst, "//") != NULL || strcmp(dst, "..") == 0 ||
            strncmp(dst, "../", 3) == 0 || strstr(dst, "/../") != NULL)
            abort();
    }
    hpct_stage_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = strndup((const char *) data + 1, size - 1);
    int which = data[0] - '0';
    if (which >= 0 && which < HPCT_NUM_OPTIONS) {
        if (hpct_option_check((hpct_option) which, text) != HPCT_OK && *hpct_last_error() == '\0')
            abort();
        if (which == HPCT_OPTION_STAGE)
            check_stage(text);
    }
    free(text);
    return 0;
}
