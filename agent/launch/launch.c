/* When srun is run again, and where. */
#include <hpctrain/launch.h>

#include "agent/launch/command.h"
#include "agent/launch/nodes.h"
#include "agent/launch/srun.h"
#include "agent/launch/variables.h"
#include "agent/rank/job_end.h"
#include "base/process.h"
#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RESTARTS 10
#define MOST_FAILURES 2 /* after which a node is left out */
#define QUICK 10        /* seconds: after two shorter runs there is a pause */
#define MOST_PAUSE 30
#define LEAST_LEFT 120 /* seconds of the job, with fewer of which another run is not begun */

typedef struct launch {
    const hpct_launch_options *options;
    const char *job;
    hpct_rank_job_end *end;
    hpct_launch_job_nodes nodes;
    bool own_nodes, by_task;           /* nodes that the user has chosen, also for each task */
    hpct_launch_step_facts first, now; /* the steps of the first and of the present run; no id:
                                   Slurm has not shown it (yet) */
    bool *used;                        /* [nodes.count] by the present run */
    int *tasks;                        /* [nodes.count] of the first run */
    int num_used, quick;               /* runs in a row that ended early */
} launch;

static void print_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void print_message(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("hpc-train launch: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* ---- where ---- */

static bool is_usable(const hpct_launch_job_node *node)
{
    return node->is_there && !node->is_slow && node->failures < MOST_FAILURES;
}

/* Counts the tasks on the nodes of the first run; other nodes are for later ones. */
static void note_first(launch *l)
{
    if (l->num_used > 0)
        return;
    for (int task = 0; task < l->first.tasks; task++) {
        hpct_launch_job_node *node = hpct_launch_job_nodes_find(&l->nodes, l->first.hosts[task]);
        if (node != NULL && l->tasks[node - l->nodes.nodes]++ == 0) {
            l->used[node - l->nodes.nodes] = true;
            l->num_used++;
        }
    }
}

/* Nodes for the next run: those of the last one, and in their place others of the job, at most as
 * many as at first. The count; next[nodes.count]. */
static int choose(const launch *l, bool *next)
{
    int count = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < l->nodes.count && count < l->first.nodes; i++) {
            const hpct_launch_job_node *node = &l->nodes.nodes[i];
            if (l->used[i] != (turn == 0) || !is_usable(node) || (l->own_nodes && l->tasks[i] == 0))
                continue;
            next[i] = true;
            count++;
        }
    }
    return count;
}

static const char *name_of(const launch *l, int i)
{
    return l->by_task ? l->first.hosts[i] : l->nodes.nodes[i].name;
}

/* The chosen nodes; by_task: the node of each task at first, where that is chosen. */
static char *join(launch *l, const bool *chosen)
{
    int count = l->by_task ? l->first.tasks : l->nodes.count;
    size_t size = 1;
    for (int i = 0; i < count; i++)
        size += strlen(name_of(l, i)) + 1;
    char *list = malloc(size), *at = list;
    if (list == NULL)
        return NULL;
    *at = '\0';
    for (int i = 0; i < count; i++) {
        const char *name = name_of(l, i);
        const hpct_launch_job_node *node = hpct_launch_job_nodes_find(&l->nodes, name);
        if (node != NULL && chosen[node - l->nodes.nodes])
            at += sprintf(at, "%s%s", at > list ? "," : "", name);
    }
    return list;
}

/* The node with most tasks of the first run that is not marked; -1: none. */
static int find_fullest(const launch *l, const bool *marked)
{
    int most = -1;
    for (int i = 0; i < l->nodes.count; i++) {
        if (!marked[i] && l->tasks[i] > 0 && (most < 0 || l->tasks[i] > l->tasks[most]))
            most = i;
    }
    return most;
}

/* As many tasks on each node as at first; one that takes another's place has the other's, beginning
 * with the one that had most. false: no memory. */
static bool count_tasks(const launch *l, const bool *next, hpct_launch_place *place)
{
    bool *counted = calloc((size_t) l->nodes.count, sizeof *counted);
    int least = INT_MAX, most = 0;
    place->tasks = 0;
    for (int go = 0; go < 2 && counted != NULL; go++) {
        for (int i = 0; i < l->nodes.count; i++) {
            int node = go == 0 ? i : find_fullest(l, counted);
            if (!next[i] || (l->tasks[i] > 0) != (go == 0) || node < 0)
                continue;
            counted[node] = true;
            place->tasks += l->tasks[node];
            least = l->tasks[node] < least ? l->tasks[node] : least;
            most = l->tasks[node] > most ? l->tasks[node] : most;
        }
    }
    place->per_node = least == most && !place->by_task ? most : 0;
    free(counted);
    return counted != NULL;
}

/* ---- while a step runs ---- */

static bool lacks_node(void *context)
{
    launch *l = context;
    note_first(l);
    if (l->num_used == 0 || hpct_launch_job_nodes_look(&l->nodes, l->job) != HPCT_OK)
        return false;
    for (int i = 0; i < l->nodes.count; i++) {
        if (l->used[i] && !l->nodes.nodes[i].is_there)
            return true;
    }
    return false;
}

static bool grows(void *context)
{
    launch *l = context;
    bool *next = calloc((size_t) l->nodes.count, sizeof *next);
    bool more = next != NULL && l->num_used < l->first.nodes &&
                hpct_launch_job_nodes_look(&l->nodes, l->job) == HPCT_OK &&
                choose(l, next) > l->num_used;
    free(next);
    if (more)
        print_message(
            "a node is back: the program is asked for a checkpoint (SIGUSR1), to start again with "
            "it");
    return more;
}

/* ---- when ---- */

/* Wrong options, data or files do not get better; 75 asks for the whole job to be continued. (What
 * srun itself ends with, before there is a step, is up to SLURM_EXIT_ERROR.) */
static bool can_help(const hpct_launch_srun_end *end)
{
    int status = end->status;
    bool explains =
        (end->began && hpct_launch_status_explains(status)) || status == 126 || status == 127;
    return status != 0 && !end->stopped && !end->others_failed && !explains;
}

/* Whether a list has this name, and not only as a part of another. */
static bool lists(const char *text, const char *name)
{
    static const char inside[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) != NULL; at++) {
        bool begins = at == text || strchr(inside, at[-1]) == NULL;
        if (begins && (at[length] == '\0' || strchr(inside, at[length]) == NULL))
            return true;
    }
    return false;
}

/* They would be refused again. */
static void leave_out_slow(launch *l, const hpct_launch_srun_end *end)
{
    for (int i = 0; i < l->nodes.count && end->status == HPCT_ERR_PEER; i++) {
        hpct_launch_job_node *node = &l->nodes.nodes[i];
        node->is_slow |= l->used[i] && lists(end->slow, node->name);
    }
}

static void note_failure(launch *l, const hpct_launch_srun_end *end)
{
    hpct_launch_job_node *node =
        end->failed[0] != '\0' ? hpct_launch_job_nodes_find(&l->nodes, end->failed) : NULL;
    if (node != NULL)
        node->failures++;
    leave_out_slow(l, end);
    if (hpct_launch_job_nodes_look(&l->nodes, l->job) != HPCT_OK)
        print_message("%s: the nodes are taken to be healthy", hpct_last_error());
    for (int i = 0; i < l->nodes.count; i++) {
        hpct_launch_job_node *one = &l->nodes.nodes[i];
        if (!l->used[i] || is_usable(one))
            continue;
        if (!one->is_there)
            print_message("%s is left out: %s", one->name, one->why);
        else if (one->is_slow)
            print_message("%s is left out: it is slow", one->name);
        else
            print_message("%s is left out: tasks have failed there %d times", one->name,
                          one->failures);
        if (!l->options->regrow)
            one->failures = MOST_FAILURES; /* also when it is back */
    }
}

/* A run that fails early on healthy nodes would fail again at once. False: told to stop. */
static bool pause_after(launch *l, const hpct_launch_srun_end *end)
{
    l->quick = end->seconds < QUICK && !end->asked_to_grow ? l->quick + 1 : 0;
    int seconds = l->quick > 1 ? 1 << (l->quick < 6 ? l->quick : 6) : 0;
    if (seconds > MOST_PAUSE)
        seconds = MOST_PAUSE;
    if (seconds > 0)
        print_message("it has ended after %.1f s: waiting %d s", end->seconds, seconds);
    return !hpct_launch_srun_stopped(seconds);
}

/* ---- the runs ---- */

static hpct_status set_variables(const launch *l, int restart)
{
    char number[16], tasks[16];
    snprintf(number, sizeof number, "%d", restart);
    snprintf(tasks, sizeof tasks, "%d", l->first.tasks);
    if (setenv("HPC_TRAIN_RESTART", number, 1) != 0 ||
        (l->first.tasks > 0 && setenv("HPC_TRAIN_LAUNCH_TASKS", tasks, 1) != 0))
        return hpct_fail_memory(0);
    return HPCT_OK;
}

/* Runs srun on `place`, NULL: as the user has it. */
static hpct_status run_once(launch *l, int restart, const hpct_launch_place *place,
                            hpct_launch_srun_end *end)
{
    const hpct_launch_options *o = l->options;
    HPCT_TRY(set_variables(l, restart));
    char **command = hpct_launch_command(o->options, o->program, place);
    if (command == NULL)
        return hpct_fail_memory(0);
    hpct_launch_srun srun = {.arguments = command,
                             .job = l->job,
                             .facts = l->first.id[0] == '\0' ? &l->first : &l->now,
                             .context = l,
                             .goes_on = hpct_launch_goes_on(o->options),
                             .lacks_node = lacks_node,
                             .grows = o->regrow ? grows : NULL};
    hpct_status status = hpct_launch_srun_run(&srun, end);
    note_first(l);
    hpct_launch_step_facts_free(&l->now);
    free(command[0]);
    free(command);
    return status;
}

/* After runs that were too short for Slurm to show where their tasks were. */
static hpct_status run_as_first(launch *l, int restart, hpct_launch_srun_end *end)
{
    for (int i = 0; i < l->nodes.count; i++) {
        if (!is_usable(&l->nodes.nodes[i]))
            return hpct_fail(HPCT_ERR_PEER,
                             "node %s cannot be used, and Slurm has not shown which "
                             "nodes the step had",
                             l->nodes.nodes[i].name);
    }
    print_message("starting again");
    return run_once(l, restart, NULL, end);
}

/* HPCT_ERR_PEER: too few nodes are left. */
static hpct_status run_again(launch *l, int restart, hpct_launch_srun_end *end)
{
    int most = l->options->min_nodes > 0 ? l->options->min_nodes : 1;
    bool *next = calloc((size_t) l->nodes.count, sizeof *next);
    if (next == NULL)
        return hpct_fail_memory((size_t) l->nodes.count);
    hpct_launch_place place = {.by_task = l->by_task};
    hpct_status status = HPCT_OK;
    char *list = NULL;
    if (l->first.id[0] == '\0') {
        free(next);
        return run_as_first(l, restart, end);
    }
    place.nodes = choose(l, next);
    if (place.nodes < most)
        status = hpct_fail(HPCT_ERR_PEER, "%d of %d nodes are left, and --min-nodes is %d",
                           place.nodes, l->first.nodes, most);
    if (status == HPCT_OK && ((list = join(l, next)) == NULL || !count_tasks(l, next, &place)))
        status = hpct_fail_memory(0);
    if (status == HPCT_OK && place.by_task)
        status = hpct_launch_set_hosts(list, place.nodes);
    if (status == HPCT_OK) {
        place.list = list;
        print_message("starting again, %d tasks on %d of %d nodes: %s", place.tasks, place.nodes,
                      l->first.nodes, list);
        memcpy(l->used, next, (size_t) l->nodes.count * sizeof *next);
        l->num_used = place.nodes;
        status = run_once(l, restart, &place, end);
    }
    free(list);
    free(next);
    return status;
}

/* slurmstepd says which program cannot be started, if its words come here and not to a file of
 * --output; it ends the task with the error's number. */
static hpct_status check_program(const launch *l, const hpct_launch_srun_end *end)
{
    const char *program = l->options->program[0];
    const int error = end->status;
    if (end->program[0] != '\0')
        return hpct_fail(HPCT_ERR_NO_INPUT, "launch: the program cannot be started on any node: %s",
                         end->program);
    if (end->alike && (error == ENOENT || error == EACCES || error == ENOEXEC) &&
        !hpct_launch_finds(l->options->options, program))
        return hpct_fail(HPCT_ERR_NO_INPUT,
                         "launch: the program cannot be started: %s (not found on this node, and "
                         "all tasks have ended with %d)",
                         program, error);
    return HPCT_OK;
}

/* Of the last run, for the message. */
static void describe(char *text, size_t size, const hpct_launch_srun_end *end)
{
    if (end->how[0] != '\0')
        snprintf(text, size, "%s", end->how);
    else if (end->gave_up)
        snprintf(text, size, "a node is gone");
    else if (end->status > 128)
        snprintf(text, size, "srun was ended by signal %d", end->status - 128);
    else
        snprintf(text, size, "exit status %d", end->status);
}

static hpct_status run_all(launch *l, int *exit_status)
{
    int most = l->options->restarts == 0 ? RESTARTS : l->options->restarts, failures = 0;
    char how[160];
    hpct_launch_srun_end end;
    HPCT_TRY(run_once(l, 0, NULL, &end));
    for (int restart = 1;; restart++) {
        *exit_status = end.status;
        bool grown = end.asked_to_grow && end.status == HPCT_ERR_STOPPED && !end.stopped;
        bool refused = restart == 1 && !end.began; /* srun has said why */
        if (!grown && (refused || !can_help(&end)))
            return HPCT_OK;
        HPCT_TRY(check_program(l, &end));
        describe(how, sizeof how, &end);
        if (!grown) {
            print_message("the run has failed: %s", how);
            note_failure(l, &end);
        }
        if (!grown && failures++ >= most) {
            print_message("not started again: there were %d restarts, and --restarts allows %d",
                          failures - 1, most > 0 ? most : 0);
            return HPCT_OK;
        }
        double left = hpct_rank_job_end_left(l->end);
        if (left < LEAST_LEFT) {
            print_message(
                "not started again: the job ends in %.0f s; exit status 75 lets another one go on",
                left);
            *exit_status = HPCT_ERR_STOPPED;
            return HPCT_OK;
        }
        if (!pause_after(l, &end)) {
            print_message("not started again: told to stop; exit status 75 lets another job go on");
            *exit_status = HPCT_ERR_STOPPED;
            return HPCT_OK;
        }
        hpct_status status = run_again(l, restart, &end);
        if (status == HPCT_ERR_PEER) {
            print_message("not started again: %s", hpct_last_error());
            return HPCT_OK;
        }
        HPCT_TRY(status);
    }
}

/* ---- before the first run ---- */

#define FIRST_SPECIAL_STEP 0xfffffffaU

static hpct_status check_place(const char **job)
{
    const char *step = getenv("SLURM_STEP_ID"), *tasks = getenv("SLURM_STEP_NODELIST");
    *job = getenv("SLURM_JOB_ID");
    if (getenv("SLURM_HET_SIZE") != NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "launch is not for heterogeneous jobs: a component "
                                          "cannot take another's tasks");
    if (*job == NULL || getenv("SLURM_JOB_NODELIST") == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "launch runs inside of a job: in a script of sbatch, or "
                                          "in the shell of salloc");
    if (tasks != NULL && step != NULL && strtoull(step, NULL, 10) < FIRST_SPECIAL_STEP)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "launch starts srun itself: call it in the job's script, without srun");
    return HPCT_OK;
}

/* Tells the runs of one launch from those of others. */
static hpct_status name_launch(const char *job)
{
    char text[96];
    snprintf(text, sizeof text, "%.31s.%lld.%" PRIx64, job, (long long) getpid(),
             (uint64_t) time(NULL));
    unsetenv("HPC_TRAIN_LAUNCH_TASKS");
    return setenv("HPC_TRAIN_LAUNCH", text, 1) == 0 ? HPCT_OK : hpct_fail_memory(0);
}

hpct_status hpct_launch(const hpct_launch_options *options, int *exit_status)
{
    launch l = {.options = options};
    *exit_status = 0;
    if (options->program == NULL || options->program[0] == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "launch: a program is missing");
    HPCT_TRY(hpct_launch_check_options(options->options));
    HPCT_TRY(check_place(&l.job));
    HPCT_TRY(name_launch(l.job));
    l.by_task = hpct_launch_is_arbitrary(options->options);
    l.own_nodes = l.by_task || hpct_launch_chooses_nodes(options->options);
    HPCT_TRY(hpct_launch_set_variables(options->options, l.job));
    HPCT_TRY(hpct_launch_job_nodes_open(&l.nodes, getenv("SLURM_JOB_NODELIST")));
    l.used = calloc((size_t) l.nodes.count, sizeof *l.used);
    l.tasks = calloc((size_t) l.nodes.count, sizeof *l.tasks);
    hpct_launch_srun_block_signals();
    hpct_status status = l.used != NULL && l.tasks != NULL
                             ? HPCT_OK
                             : hpct_fail_memory((size_t) l.nodes.count * sizeof *l.used);
    if (status == HPCT_OK)
        status = hpct_rank_job_end_open(&l.end);
    if (status == HPCT_OK)
        status = run_all(&l, exit_status);
    hpct_rank_job_end_close(l.end);
    hpct_launch_srun_unblock_signals();
    hpct_launch_step_facts_free(&l.first);
    hpct_launch_job_nodes_close(&l.nodes);
    free(l.tasks);
    free(l.used);
    return status;
}
