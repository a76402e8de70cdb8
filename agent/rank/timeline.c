/* Records parts of steps in memory, and writes them as a Chrome trace. */
#include "agent/rank/timeline.h"

#include "base/file.h"
#include "base/output.h"
#include "base/process.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVENTS_OF_STEP 64 /* on average: the parts, and buckets */
#define EVENTS (HPCT_RANK_TIMELINE_STEPS * EVENTS_OF_STEP)
#define FIRST_STEP 2

typedef struct event {
    double began, ended;         /* seconds since all ranks opened the timeline */
    double cpu_began, cpu_ended; /* CPU time of the stepping thread; for computation only */
    int64_t step;
    int32_t part, number;
} event;

/* Sent by each rank to rank 0; num_events events follow. */
typedef struct header {
    int64_t num_events;
    char node[64];
} header;

struct hpct_rank_timeline {
    char *path;
    double zero; /* clock when all ranks opened it: clocks of nodes differ */
    int64_t step;
    double cpu; /* this thread's CPU time at the end of the step's last part */
    header header;
    event *events;
};

static const struct {
    const char *name;
    bool numbered;
    int track; /* 0: computation; else first of the tracks by number */
} parts[] = {
    [HPCT_RANK_TIMELINE_INPUT] = {"input", false, 0},
    [HPCT_RANK_TIMELINE_FORWARD] = {"forward", false, 0},
    [HPCT_RANK_TIMELINE_BACKWARD] = {"backward", false, 0},
    [HPCT_RANK_TIMELINE_WAIT] = {"wait for sums", false, 0},
    [HPCT_RANK_TIMELINE_UPDATE] = {"update", false, 0},
    [HPCT_RANK_TIMELINE_PIECE_FORWARD] = {"forward of micro-batch", true, 0},
    [HPCT_RANK_TIMELINE_PIECE_BACKWARD] = {"backward of micro-batch", true, 0},
    [HPCT_RANK_TIMELINE_REDUCTION] = {"reduction", true, 1},
};

/* Whether it is one of the consecutive parts of a step. */
static bool follows(int part)
{
    return parts[part].track == 0 && !parts[part].numbered;
}

static int track_of(const event *e)
{
    int track = parts[e->part].track;
    return track > 0 ? track + (int) e->number : 0;
}

static hpct_status allocate(hpct_rank_timeline **out, const hpct_context *context, const char *path)
{
    hpct_rank_timeline *t = *out = calloc(1, sizeof *t);
    if (t == NULL)
        return hpct_fail_memory(sizeof *t);
    t->path = strdup(path);
    t->events = calloc(EVENTS, sizeof *t->events);
    if (t->path == NULL || t->events == NULL)
        return hpct_fail_memory(EVENTS * sizeof *t->events);
    strncpy(t->header.node, hpct_context_node(context), sizeof t->header.node - 1);
    return HPCT_OK;
}

hpct_status hpct_rank_timeline_open(hpct_rank_timeline **out, hpct_context *context,
                                    const char *path)
{
    *out = NULL;
    if (path == NULL)
        return HPCT_OK;
    hpct_status status = hpct_context_agree(context, allocate(out, context, path));
    if (status == HPCT_OK) /* again: the first also waits for slow file systems */
        status = hpct_context_agree(context, HPCT_OK);
    if (status != HPCT_OK) {
        hpct_rank_timeline_close(*out);
        *out = NULL;
        return status;
    }
    (*out)->zero = hpct_process_clock();
    return HPCT_OK;
}

void hpct_rank_timeline_close(hpct_rank_timeline *t)
{
    if (t == NULL)
        return;
    free(t->path);
    free(t->events);
    free(t);
}

/* CPU time of this thread in seconds. */
static double cpu_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

void hpct_rank_timeline_step(hpct_rank_timeline *t)
{
    if (t == NULL)
        return;
    t->step++;
    t->cpu = cpu_clock();
}

double hpct_rank_timeline_now(const hpct_rank_timeline *t)
{
    return t != NULL ? hpct_process_clock() - t->zero : 0;
}

void hpct_rank_timeline_add(hpct_rank_timeline *t, hpct_rank_timeline_part part, int number,
                            double began)
{
    if (t == NULL || t->step < FIRST_STEP || t->step >= FIRST_STEP + HPCT_RANK_TIMELINE_STEPS ||
        t->header.num_events == EVENTS)
        return;
    event *e = &t->events[t->header.num_events++];
    *e = (event){.began = began,
                 .ended = hpct_rank_timeline_now(t),
                 .cpu_began = t->cpu,
                 .cpu_ended = t->cpu,
                 .step = t->step,
                 .part = (int32_t) part,
                 .number = number};
    if (follows(e->part))
        t->cpu = e->cpu_ended = cpu_clock();
}

/* ---- the file ---- */

/* A node name as a JSON string. */
static void print_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char) *text < 0x20 || *text == '"' || *text == '\\')
            fprintf(file, "\\u%04x", (unsigned char) *text);
        else
            fputc(*text, file);
    }
}

static void print_event(FILE *file, int rank, const event *e)
{
    fprintf(file, ",\n{\"ph\": \"X\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, ",
            rank, track_of(e), 1e6 * e->began, 1e6 * (e->ended - e->began));
    if (follows(e->part))
        fprintf(file, "\"tts\": %.3f, \"tdur\": %.3f, ", 1e6 * e->cpu_began,
                1e6 * (e->cpu_ended - e->cpu_began));
    fprintf(file, "\"name\": \"%s", parts[e->part].name);
    if (parts[e->part].numbered)
        fprintf(file, " %d", (int) e->number);
    fprintf(file, "\", \"args\": {\"step\": %" PRId64 "}}", e->step);
}

static void print_rank(FILE *file, int rank, const header *h, const event *events)
{
    int tracks = 1;
    fprintf(file,
            "%s\n{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", \"args\": {\"name\": ",
            rank == 0 ? "" : ",", rank);
    fprintf(file, "\"rank %d (", rank);
    print_text(file, h->node);
    fprintf(file, ")\"}}");
    for (int64_t i = 0; i < h->num_events; i++) {
        int track = track_of(&events[i]);
        tracks = track >= tracks ? track + 1 : tracks;
    }
    for (int track = 0; track < tracks; track++) {
        fprintf(file, ",\n{\"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"name\": \"thread_name\", ",
                rank, track);
        if (track == 0)
            fprintf(file, "\"args\": {\"name\": \"computes\"}}");
        else
            fprintf(file, "\"args\": {\"name\": \"bucket %d\"}}", track - 1);
    }
    for (int64_t i = 0; i < h->num_events; i++)
        print_event(file, rank, &events[i]);
}

/* Formats one rank's events in memory, then writes them. */
static hpct_status write_rank(const hpct_output *file, int rank, const header *h,
                              const event *events)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (stream == NULL)
        return hpct_fail_memory(0);
    if (rank == 0)
        fprintf(stream, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    print_rank(stream, rank, h, events);
    bool bad = ferror(stream) != 0;
    hpct_status status = fclose(stream) != 0 || bad
                             ? hpct_fail_memory(bytes)
                             : hpct_file_write_all(file->fd, text, bytes, file->path);
    free(text);
    return status;
}

/* Receives and writes rank by rank, so that rank 0 stores one rank's events at a time. *written: a
 * write error; the other ranks still send theirs. */
static hpct_status write_ranks(hpct_rank_timeline *t, hpct_comm *comm, event *events,
                               const hpct_output *file, hpct_status *written)
{
    hpct_status status = HPCT_OK;
    for (int rank = 0; rank < comm->size && status == HPCT_OK; rank++) {
        header h = t->header;
        status = comm->ops->broadcast(comm, &h, sizeof h, rank);
        size_t bytes = (size_t) h.num_events * sizeof *events;
        if (status == HPCT_OK)
            memcpy(events, t->events, bytes);
        if (status == HPCT_OK)
            status = comm->ops->broadcast(comm, events, bytes, rank);
        if (status == HPCT_OK && comm->rank == 0 && *written == HPCT_OK)
            *written = write_rank(file, rank, &h, events);
    }
    return status;
}

hpct_status hpct_rank_timeline_write(hpct_rank_timeline *t, hpct_context *context)
{
    if (t == NULL)
        return HPCT_OK;
    hpct_comm *comm = hpct_context_comm(context);
    hpct_output file = {.fd = -1};
    hpct_status status = HPCT_OK, written = HPCT_OK;
    event *events = malloc(EVENTS * sizeof *events);
    if (events == NULL)
        status = hpct_fail_memory(EVENTS * sizeof *events);
    else if (comm->rank == 0)
        status = hpct_output_create(&file, t->path, false);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = write_ranks(t, comm, events, &file, &written);
    if (status == HPCT_OK && comm->rank == 0 && written == HPCT_OK)
        written = hpct_file_write_all(file.fd, "\n]}\n", 4, file.path);
    if (status == HPCT_OK && comm->rank == 0 && written == HPCT_OK)
        written = hpct_output_place(&file);
    hpct_output_close(&file);
    free(events);
    return status == HPCT_OK ? hpct_context_agree(context, written) : status;
}
