/* One line per step, of KEY=VALUE pairs. */
#include "agent/launch/step_facts.h"

#include "base/ask.h"
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

bool hpct_step_facts_parse(const char *text, pid_t srun, hpct_step_facts *out)
{
    *out = (hpct_step_facts){.nodes = 0};
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (is_started_by(line, length, srun)) {
            char *id = value_of(line, length, "StepId");
            out->nodes = number_of(line, length, "Nodes");
            out->tasks = number_of(line, length, "Tasks");
            out->list = value_of(line, length, "NodeList");
            bool fits = id != NULL && id[0] != '\0' && strlen(id) < sizeof out->id;
            if (fits)
                strcpy(out->id, id);
            free(id);
            if (fits && out->list != NULL && out->nodes > 0 && out->tasks >= out->nodes)
                return true;
            hpct_step_facts_free(out);
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

hpct_status hpct_step_facts_ask(const char *job, pid_t srun, hpct_step_facts *out)
{
    char name[32], *text = malloc(MOST_BYTES);
    snprintf(name, sizeof name, "%s", job);
    char *const arguments[] = {"scontrol", "--oneliner", "show", "step", name, NULL};
    const hpct_ask ask = {.arguments = arguments, .seconds = SECONDS};
    *out = (hpct_step_facts){.nodes = 0};
    if (text == NULL)
        return hpct_fail_memory(MOST_BYTES);
    hpct_status status = hpct_ask_run(&ask, text, MOST_BYTES);
    if (status != HPCT_OK || !hpct_step_facts_parse(text, srun, out))
        status = hpct_fail(HPCT_ERR_NO_INPUT, "no step of job %s is srun's (process %lld)", job,
                           (long long) srun);
    free(text);
    return status;
}

void hpct_step_facts_free(hpct_step_facts *facts)
{
    free(facts->list);
    *facts = (hpct_step_facts){.nodes = 0};
}
