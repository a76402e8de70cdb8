/* Tasks that can open the same devices number GPUs alike and form a group, whose first task sends
 * one request for all. */
#include <config.h>

#include "spank/gpu_closest.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/status.h"
#include "spank/gpu.h"
#include "spank/gpu_ask.h"

#define MAX_CPUS (8 * (int) sizeof((hpct_spank_gpu_view){0}).cpus)

static bool has_cpu(const hpct_spank_gpu_view *view, int cpu)
{
    return (view->cpus[cpu / 8] >> cpu % 8 & 1) != 0;
}

/* access() also consults the devices cgroup and, unlike open(), wakes no driver. */
static void find_gpus(const char *visible, hpct_spank_gpu_view *view)
{
    memset(view, 0, sizeof *view);
    sched_getaffinity(0, sizeof view->cpus, (cpu_set_t *) (void *) view->cpus);
    view->gpus = hpct_spank_gpu_count(visible);
    if (view->gpus < 2)
        return;
    if (strlen(visible) < sizeof view->visible)
        strcpy(view->visible, visible);
    for (int i = 0; i < 128; i++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        if (access(path, R_OK | W_OK) == 0)
            view->openable[i / 64] |= UINT64_C(1) << i % 64;
    }
}

static bool in_group(const hpct_spank_gpu_view *one, const hpct_spank_gpu_view *other)
{
    return other != NULL && other->gpus > 1 &&
           memcmp(one->openable, other->openable, sizeof one->openable) == 0;
}

/* Whether a task of the group is bound to a subset of the machine's CPUs; if none is, all GPUs are
 * equally near. */
static bool is_bound(const hpct_spank_gpu_meet *meet, const hpct_spank_gpu_view *own)
{
    char text[4096] = "";
    FILE *file = fopen("/sys/devices/system/cpu/online", "re");
    if (file != NULL && fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    if (file != NULL)
        fclose(file);
    const char *p = text;
    long first, last;
    while (hpct_number_scan(&p, MAX_CPUS - 1, &first)) {
        last = first;
        if (*p == '-') {
            p++;
            if (!hpct_number_scan(&p, MAX_CPUS - 1, &last))
                return true;
        }
        for (; first <= last; first++) {
            for (int task = 0; task < hpct_spank_gpu_meet_tasks(meet); task++) {
                const hpct_spank_gpu_view *view = hpct_spank_gpu_meet_view(meet, task);
                if (in_group(own, view) && !has_cpu(view, (int) first))
                    return true;
            }
        }
        if (*p++ != ',')
            return p == text + 1; /* true if the file could not be read */
    }
    return true;
}

/* The group's request: one line per task. */
static char *write_request(const hpct_spank_gpu_meet *meet, const hpct_spank_gpu_view *own)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return NULL;
    for (int task = 0; task < hpct_spank_gpu_meet_tasks(meet); task++) {
        const hpct_spank_gpu_view *view = hpct_spank_gpu_meet_view(meet, task);
        const char *comma = "";
        if (!in_group(own, view))
            continue;
        for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
            int first = cpu;
            if (!has_cpu(view, cpu))
                continue;
            while (cpu + 1 < MAX_CPUS && has_cpu(view, cpu + 1))
                cpu++;
            fprintf(stream, "%s%d-%d", comma, first, cpu);
            comma = ",";
        }
        fprintf(stream, " %s\n", view->visible);
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* Posts to each task of the group its line of the answer; -1 without an answer. */
static void post_answer(hpct_spank_gpu_meet *meet, const hpct_spank_gpu_view *own,
                        const char *answer)
{
    for (int task = 0; task < hpct_spank_gpu_meet_tasks(meet); task++) {
        long place = -1;
        if (!in_group(own, hpct_spank_gpu_meet_view(meet, task)))
            continue;
        if (answer != NULL && hpct_number_scan(&answer, INT_MAX - 1, &place))
            answer++;
        hpct_spank_gpu_meet_tell(meet, task, (int) place);
    }
}

/* Whether the answer is valid: one line per task, each an index in the task's list. */
static bool is_answer(const hpct_spank_gpu_meet *meet, const hpct_spank_gpu_view *own,
                      const char *answer)
{
    for (int task = 0; task < hpct_spank_gpu_meet_tasks(meet); task++) {
        const hpct_spank_gpu_view *view = hpct_spank_gpu_meet_view(meet, task);
        long place;
        if (in_group(own, view) &&
            (!hpct_number_scan(&answer, view->gpus - 1, &place) || *answer++ != '\n'))
            return false;
    }
    return *answer == '\0';
}

/* Sends the request for the group of `own`, and posts the answers. */
static hpct_status ask_for_all(hpct_spank_gpu_meet *meet, const hpct_spank_gpu_view *own,
                               const char *helper, const char *node)
{
    char answer[8192];
    hpct_status status = HPCT_OK;
    char *request = NULL;
    if (!is_bound(meet, own)) {
        post_answer(meet, own, NULL);
        return HPCT_OK;
    }
    if (own->visible[0] == '\0')
        status = hpct_fail(HPCT_ERR_CONFIG, "CUDA_VISIBLE_DEVICES is too long");
    else if ((request = write_request(meet, own)) == NULL)
        status = hpct_fail_memory(0);
    else
        status = hpct_spank_gpu_ask(helper, node, request, HPCT_SPANK_GPU_ASK_SECONDS, answer,
                                    sizeof answer);
    free(request);
    if (status == HPCT_OK && !is_answer(meet, own, answer))
        status = hpct_fail(HPCT_ERR_CONFIG, "%s gave an invalid answer", helper);
    post_answer(meet, own, status == HPCT_OK ? answer : NULL);
    return status;
}

hpct_status hpct_spank_gpu_closest_place(hpct_spank_gpu_meet *meet, int task, const char *visible,
                                         const char *helper, const char *node, int *place)
{
    hpct_spank_gpu_view *own = malloc(sizeof *own);
    hpct_status status = HPCT_OK;
    int first = 0;
    *place = -1;
    if (own == NULL)
        return hpct_fail_memory(sizeof *own);
    find_gpus(visible, own);
    hpct_spank_gpu_meet_post(meet, task, own);
    if (own->gpus < 2)
        goto end;
    bool all = hpct_spank_gpu_meet_all(meet, HPCT_SPANK_GPU_MEET_SECONDS * 1000);
    while (first < task && !in_group(own, hpct_spank_gpu_meet_view(meet, first)))
        first++;
    if (first < task) {
        int wait = (HPCT_SPANK_GPU_MEET_SECONDS + HPCT_SPANK_GPU_ASK_SECONDS + 5) * 1000;
        *place = hpct_spank_gpu_meet_listen(meet, task, wait);
        goto end;
    }
    if (all) {
        status = ask_for_all(meet, own, helper, node);
    } else {
        status = hpct_fail(HPCT_ERR_CONFIG, "some tasks did not say on which CPUs they run");
        post_answer(meet, own, NULL);
    }
    *place = hpct_spank_gpu_meet_listen(meet, task, 0);
end:
    free(own);
    return status;
}
