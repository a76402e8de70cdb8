/* "srun: error: NODES: task[s] RANKS: HOW", "srun: error: Node failure on NODE",
 * "srun: error: Task launch for STEP failed on node NODE: WHY". */
#include "agent/launch/srun_line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Moves *at behind `text` if it begins so. */
static bool skip(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Copies the name or list of names at *at, which ends before `end`, and moves behind that. */
static bool take_nodes(const char **at, const char *end, hpct_srun_line *out)
{
    size_t length = 0;
    const char *text = *at;
    while (isalnum((unsigned char) text[length]) ||
           (text[length] != '\0' && strchr("-_.[],", text[length]) != NULL))
        length++;
    if (length == 0 || length >= sizeof out->nodes)
        return false;
    memcpy(out->nodes, text, length);
    out->nodes[length] = '\0';
    *at += length;
    return skip(at, end);
}

/* "0", "0-3,5" and what follows. */
static bool skip_ranks(const char **at)
{
    size_t length = strspn(*at, "0123456789-,");
    *at += length;
    return length > 0 && skip(at, ": ");
}

/* A line of slurmstepd or of a task may begin in any way, one of srun only so. */
bool hpct_srun_line_parse(const char *line, hpct_srun_line *out)
{
    const char *at = line;
    *out = (hpct_srun_line){.code = 0};
    if (!skip(&at, "srun: error: "))
        return false;
    const char *launch =
        strncmp(at, "Task launch for ", 16) == 0 ? strstr(at, "failed on node ") : NULL;
    if (launch != NULL) {
        launch += strlen("failed on node ");
        out->event = HPCT_SRUN_NODE_FAILED;
        return take_nodes(&launch, ":", out);
    }
    if (skip(&at, "Node failure on ")) {
        out->event = HPCT_SRUN_NODE_FAILED;
        return take_nodes(&at, "", out) && *at == '\0';
    }
    if (!take_nodes(&at, ": ", out) || !(skip(&at, "tasks ") || skip(&at, "task ")))
        return false;
    out->has_first = at[0] == '0'; /* ranks are in order */
    if (!skip_ranks(&at))
        return false;
    out->event = HPCT_SRUN_KILLED;
    if (skip(&at, "Exited with exit code")) {
        out->event = HPCT_SRUN_EXITED;
        out->code = atoi(at);
        return out->code > 0;
    }
    return *at != '\0';
}
