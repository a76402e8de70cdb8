/* What launch reads of srun, scontrol and sinfo, line by line and as a whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/nodes.h"
#include "agent/launch/srun_line.h"
#include "agent/launch/step_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_line(const char *line)
{
    hpct_srun_line said;
    hpct_sinfo_line node;
    if (hpct_srun_line_parse(line, &said) &&
        (said.nodes[0] == '\0' || memchr(said.nodes, '\0', sizeof said.nodes) == NULL ||
         (said.event == HPCT_SRUN_EXITED) != (said.code > 0)))
        abort();
    if (hpct_sinfo_line_parse(line, &node)) {
        if (node.name[0] == '\0' || node.port < 1 || node.port > 65535)
            abort();
        hpct_sinfo_state_runs(node.state);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *) data, size), *rest = NULL;
    hpct_step_facts facts;
    if (text == NULL)
        abort();
    if (hpct_step_facts_parse(text, 12, &facts) &&
        (facts.id[0] == '\0' || facts.list == NULL || facts.nodes < 1 || facts.tasks < facts.nodes))
        abort();
    hpct_step_facts_free(&facts);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        take_line(line);
    free(text);
    return 0;
}
