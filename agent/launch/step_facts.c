/* scontrol prints a line per step, of KEY=VALUE pairs; sattach a line per node:
 * "Node 1 (node2), 2 task(s): 3 4". */
#include "agent/launch/step_facts.h"

#include "base/ask.h"
#include "base/cluster/nodelist.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (1 << 20)
#define SECONDS 10

/* The value of the first `key` in a line, as a copy; NULL: it has none. */
static char *value_of(const char *line, size_t length, const char *key)
{
    size_t size = strlen(key);
    for (const char *at = line; at + size < line + length; at++) {
        bool begins = at == line || at[-1] == ' ';
        if (begins && strncmp(at, key, size) == 0 && at[size] == '=') {
            const char *value = at + size + 1;
            size_t rest = (size_t) (line + length - value), end = 0;
            while (end < rest && value[end] != ' ')
                end++;
            return strndup(value, end);
        }
    }
    return NULL;
}

static int number_of(const char *line, size_t length, const char *key)
{
    char *text = value_of(line, length, key);
    int number = text != NULL ? atoi(text) : 0;
    free(text);
    return number;
}

/* "login:4711" */
static bool is_started_by(const char *line, size_t length, pid_t srun)
{
    char *text = value_of(line, length, "SrunHost:Pid");
    const char *colon = text != NULL ? strrchr(text, ':') : NULL;
    bool is = colon != NULL && atoll(colon + 1) == (long long) srun;
    free(text);
    return is;
}

bool hpct_launch_step_facts_parse(const char *text, pid_t srun, hpct_launch_step_facts *out)
{
    *out = (hpct_launch_step_facts){.nodes = 0};
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (is_started_by(line, length, srun)) {
            char *id = value_of(line, length, "StepId");
            out->nodes = number_of(line, length, "Nodes");
            out->tasks = number_of(line, length, "Tasks");
            bool fits = id != NULL && id[0] != '\0' && strlen(id) < sizeof out->id;
            if (fits)
                strcpy(out->id, id);
            free(id);
            if (fits && out->nodes > 0 && out->tasks >= out->nodes)
                return true;
            hpct_launch_step_facts_free(out);
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

/* "3 4" behind a node's name. The number of tasks; -1: one is out of range, or has a node. */
static int put_tasks(const char *text, const char *node, hpct_launch_step_facts *out)
{
    int count = 0;
    for (char *end;; text = end, count++) {
        long task = strtol(text, &end, 10);
        if (end == text)
            return count;
        if (task < 0 || task >= out->tasks || out->hosts[task] != NULL ||
            (out->hosts[task] = strdup(node)) == NULL)
            return -1;
    }
}

bool hpct_launch_step_facts_parse_layout(char *text, hpct_launch_step_facts *out)
{
    int known = 0;
    char *rest = NULL;
    out->hosts = calloc((size_t) out->tasks, sizeof *out->hosts);
    for (char *line = out->hosts != NULL ? strtok_r(text, "\n", &rest) : NULL;
         line != NULL && known >= 0; line = strtok_r(NULL, "\n", &rest)) {
        char node[HPCT_CLUSTER_MAX_NODE_NAME + 1];
        int at = 0, count = 0;
        if (sscanf(line, " Node %*d (%255[^)]), %*d task(s):%n", node, &at) == 1 && at > 0)
            count = put_tasks(line + at, node, out);
        known = count < 0 ? -1 : known + count;
    }
    return known == out->tasks;
}

static hpct_status ask_layout(char *text, hpct_launch_step_facts *out)
{
    char *const arguments[] = {"sattach", "--layout", out->id, NULL};
    const hpct_ask ask = {.arguments = arguments, .seconds = SECONDS};
    HPCT_TRY(hpct_ask_run(&ask, text, MOST_BYTES));
    return hpct_launch_step_facts_parse_layout(text, out)
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_IO, "sattach --layout %s does not name all tasks", out->id);
}

hpct_status hpct_launch_step_facts_ask(const char *job, pid_t srun, hpct_launch_step_facts *out)
{
    char name[32], *text = malloc(MOST_BYTES);
    snprintf(name, sizeof name, "%s", job);
    char *const arguments[] = {"scontrol", "--oneliner", "show", "step", name, NULL};
    const hpct_ask ask = {.arguments = arguments, .seconds = SECONDS};
    *out = (hpct_launch_step_facts){.nodes = 0};
    if (text == NULL)
        return hpct_fail_memory(MOST_BYTES);
    hpct_status status = hpct_ask_run(&ask, text, MOST_BYTES);
    if (status != HPCT_OK || !hpct_launch_step_facts_parse(text, srun, out))
        status = hpct_fail(HPCT_ERR_NO_INPUT, "no step of job %s is srun's (process %lld)", job,
                           (long long) srun);
    else
        status = ask_layout(text, out);
    if (status != HPCT_OK)
        hpct_launch_step_facts_free(out);
    free(text);
    return status;
}

void hpct_launch_step_facts_free(hpct_launch_step_facts *facts)
{
    hpct_cluster_names_free(facts->hosts, facts->hosts != NULL ? facts->tasks : 0);
    *facts = (hpct_launch_step_facts){.nodes = 0};
}
