/* What check reads of /proc and of cgroups: the text as each of the files, and its lines. */
#include "agent/rank/node_text.h"
#include "tests/fuzz/fuzz.h"

static void take_files(const char *text)
{
    cpu_set_t mask;
    hpct_rank_cpu_ticks ticks;
    hpct_rank_quota_text quota;
    hpct_rank_process_text process;
    uint64_t number;
    memset(&mask, 0x55, sizeof mask);
    if (!hpct_rank_node_text_cpus(text, &mask, sizeof mask, &ticks) && ticks.all != 0)
        abort();
    hpct_rank_node_text_quota(text, &quota);
    hpct_rank_node_text_number(text, &number);
    if (hpct_rank_node_text_process(text, &process) &&
        (process.pid < 0 || process.cpu < 0 ||
         memchr(process.name, '\0', sizeof process.name) == NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = NULL;
    bool unified;
    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    const char *value = hpct_rank_node_text_variable(text, size, "SLURM_JOB_ID");
    if (value != NULL && (value < text || value > text + size))
        abort();
    take_files(text);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *path = hpct_rank_node_text_cgroup(line, &unified);
        if (path != NULL && path[0] != '/')
            abort();
    }
    free(text);
    return 0;
}
