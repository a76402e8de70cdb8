/* Builds the helper's command line. */
#include <config.h>

#include "spank/stage_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/child.h"

static void alive(void *share)
{
    hpct_share_progress(share);
}

/* A list of ten thousand nodes is too long for an argument: passed as a file. */
static hpct_status open_hosts(const char *text, int *file)
{
    size_t size = strlen(text);
    *file = memfd_create("hpc-train-nodes", MFD_CLOEXEC);
    while (*file >= 0 && size > 0) {
        ssize_t put = write(*file, text, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            close(*file);
            *file = -1;
            break;
        }
        text += put;
        size -= (size_t) put;
    }
    if (*file < 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "the list of nodes cannot be handed to the helper: %s",
                         strerror(errno));
    return HPCT_OK;
}

hpct_status hpct_stage_run_work(void *context, hpct_share *share)
{
    const hpct_stage_run *r = context;
    const hpct_settings *settings = r->settings;
    static char progress_option[] = "--progress-fd", verbose_option[] = "--verbose";
    static char quiet_option[] = "--quiet";
    static char max_option[] = "--max", allow_option[] = "--allow", to_option[] = "--to";
    static char list_option[] = "--list", mode_option[] = "--mode", nodes_option[] = "--nodes";
    static char index_option[] = "--index", job_option[] = "--job", key_option[] = "--key";
    static char links_option[] = "--links", follow[] = "follow", memory_option[] = "--memory";
    char max[32], memory[32], progress[16], nodes[32], index[16];
    size_t n = 0, room = (size_t) settings->num_stage_src * 2 + 24;
    int hosts = -1;
    char **arguments = calloc(room, sizeof *arguments);
    if (arguments == NULL)
        return hpct_fail_memory(0);
    arguments[n++] = settings->helper;
    snprintf(progress, sizeof progress, "%d", HPCT_PROGRESS_FD);
    arguments[n++] = progress_option;
    arguments[n++] = progress;
    if (settings->verbose)
        arguments[n++] = verbose_option;
    else if (r->node != 0) /* the first node reports progress for all */
        arguments[n++] = quiet_option;
    if (settings->stage_max != 0) {
        snprintf(max, sizeof max, "%llu", (unsigned long long) settings->stage_max);
        arguments[n++] = max_option;
        arguments[n++] = max;
    }
    if (settings->stage_follow) {
        arguments[n++] = links_option;
        arguments[n++] = follow;
    }
    if (r->memory != 0) {
        snprintf(memory, sizeof memory, "%llu", (unsigned long long) r->memory);
        arguments[n++] = memory_option;
        arguments[n++] = memory;
    }
    for (int i = 0; i < settings->num_stage_src; i++) {
        arguments[n++] = allow_option;
        arguments[n++] = settings->stage_src[i];
    }
    char *to = strdup(r->to), *list = strdup(r->list);
    char *mode = r->mode == NULL ? NULL : strdup(r->mode);
    char *job = r->hosts == NULL ? NULL : strdup(r->job);
    char *key = r->hosts == NULL || r->key == NULL ? NULL : strdup(r->key);
    if (mode != NULL) {
        arguments[n++] = mode_option;
        arguments[n++] = mode;
    }
    hpct_status status = r->hosts == NULL ? HPCT_OK : open_hosts(r->hosts, &hosts);
    if (hosts >= 0) {
        snprintf(nodes, sizeof nodes, "/proc/self/fd/%d", HPCT_CHILD_FILE_FD);
        snprintf(index, sizeof index, "%d", r->node);
        arguments[n++] = nodes_option;
        arguments[n++] = nodes;
        arguments[n++] = index_option;
        arguments[n++] = index;
        arguments[n++] = job_option;
        arguments[n++] = job;
    }
    if (hosts >= 0 && key != NULL) {
        arguments[n++] = key_option;
        arguments[n++] = key;
    }
    arguments[n++] = to_option;
    arguments[n++] = to;
    arguments[n++] = list_option;
    arguments[n++] = list;
    const hpct_child child = {
        .arguments = arguments,
        .stall_seconds = r->stall_seconds,
        .end_signal = SIGTERM,
        .file = hosts,
        .alive = alive,
        .context = share,
    };
    if (to == NULL || list == NULL || (r->hosts != NULL && job == NULL) ||
        (r->mode != NULL && mode == NULL))
        status = hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = hpct_child_run(&child, "staging");
    if (hosts >= 0)
        close(hosts);
    free(job);
    free(key);
    free(mode);
    free(to);
    free(list);
    free(arguments);
    return status;
}
