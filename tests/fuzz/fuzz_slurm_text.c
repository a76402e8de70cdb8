/* What launch reads of srun, scontrol and sinfo, line by line and as a whole. */
#include "agent/launch/nodes.h"
#include "agent/launch/srun_line.h"
#include "agent/launch/step_facts.h"
#include "agent/launch/variables.h"
#include "tests/fuzz/fuzz.h"

static void take_line(const char *line)
{
    hpct_launch_srun_line said;
    hpct_launch_sinfo_line node;
    if (hpct_launch_srun_line_parse(line, &said) &&
        (said.nodes[0] == '\0' || memchr(said.nodes, '\0', sizeof said.nodes) == NULL ||
         said.code < 0 || (said.event == HPCT_LAUNCH_SRUN_EXITED && said.code == 0) ||
         (said.event == HPCT_LAUNCH_SRUN_NODE_FAILED && said.code != 0)))
        abort();
    if (hpct_launch_sinfo_line_parse(line, &node)) {
        if (node.name[0] == '\0' || node.port < 1 || node.port > 65535)
            abort();
        hpct_launch_sinfo_state_runs(node.state);
    }
}

static void take_layout(const char *text)
{
    hpct_launch_step_facts facts = {.tasks = 5};
    char *copy = strdup(text);
    must(copy != NULL);
    if (hpct_launch_step_facts_parse_layout(copy, &facts)) {
        for (int task = 0; task < facts.tasks; task++) {
            if (facts.hosts[task] == NULL || facts.hosts[task][0] == '\0')
                abort();
        }
    }
    hpct_launch_step_facts_free(&facts);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *) data, size), *rest = NULL;
    hpct_launch_step_facts facts;
    must(text != NULL);
    if (hpct_launch_step_facts_parse(text, 12, &facts) &&
        (facts.id[0] == '\0' || facts.nodes < 1 || facts.tasks < facts.nodes))
        abort();
    hpct_launch_step_facts_free(&facts);
    take_layout(text);
    char gpus[64];
    (void) hpct_launch_gpus_per_node("6", "7", text, gpus, sizeof gpus);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        take_line(line);
    free(text);
    return 0;
}
