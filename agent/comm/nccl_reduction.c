/* Reductions over NCCL: one all-reduce, in 16 bits between two conversions; or, for 16 bits and
 * groups of ranks, fp32 sums within the group to the owners of slices, 16-bit sums between the
 * owners of a slice, and distribution within the group (agent/comm/grid.h). */
#include "agent/comm/nccl_comm.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* For data in host memory, which is copied through the device. */
typedef struct landing {
    float *pinned; /* [count + exact] */
    bool due;      /* started, and the result not yet copied to the caller's data */
} landing;

struct hpct_comm_reduction {
    nccl_comm *comm;
    hpct_comm_reduction_options options;
    hpct_device_type type; /* on the wire */
    bool grouped;
    hpct_comm_slice_range slice; /* owned by this rank within its group */
    float *at;                   /* [count + exact] on the device: the caller's data or a copy */
    void *wire;                  /* 16-bit values: [count], or of the slice */
    landing *host;               /* NULL: data is on the device */
    nccl_job job;
};

static size_t floats_of(const hpct_comm_reduction *r)
{
    return r->options.count + r->options.exact;
}

static hpct_device_result copy_in(const hpct_comm_reduction *r)
{
    return r->host == NULL
               ? HPCT_DEVICE_OK
               : r->comm->calls->copy(r->at, r->host->pinned, floats_of(r) * sizeof(float),
                                      r->job.lane->stream);
}

static hpct_device_result copy_out(const hpct_comm_reduction *r)
{
    return r->host == NULL
               ? HPCT_DEVICE_OK
               : r->comm->calls->copy(r->host->pinned, r->at, floats_of(r) * sizeof(float),
                                      r->job.lane->stream);
}

/* ---- NCCL groups of calls ---- */

typedef struct batch {
    const hpct_device_calls *calls;
    hpct_device_result result;
} batch;

static batch begin(const hpct_comm_reduction *r)
{
    return (batch){r->comm->calls, r->comm->calls->group_start()};
}

static void add(batch *b, hpct_device_result result)
{
    if (b->result == HPCT_DEVICE_OK && result != HPCT_DEVICE_BUSY)
        b->result = result;
}

/* ncclGroupEnd must follow ncclGroupStart also after an error. */
static hpct_device_result end(const batch *b)
{
    hpct_device_result result = b->calls->group_end();
    return b->result != HPCT_DEVICE_OK ? b->result : result;
}

static hpct_device_result sum_on_wire(const hpct_comm_reduction *r, const nccl_channel *channel,
                                      float *data, size_t count, bool exact)
{
    const hpct_device_calls *calls = r->comm->calls;
    void *stream = r->job.lane->stream;
    hpct_device_result result = HPCT_DEVICE_OK;
    if (count > 0)
        result = calls->encode(r->type, count, data, r->wire, stream);
    if (result != HPCT_DEVICE_OK)
        return result;
    batch b = begin(r);
    if (count > 0)
        add(&b, calls->all_reduce(r->wire, count, r->type, channel->nccl, stream));
    if (exact && r->options.exact > 0)
        add(&b, calls->all_reduce(r->at + r->options.count, r->options.exact, HPCT_DEVICE_FP32,
                                  channel->nccl, stream));
    return end(&b);
}

static hpct_device_result from_wire(const hpct_comm_reduction *r, float *data, size_t count)
{
    return count == 0 ? HPCT_DEVICE_OK
                      : r->comm->calls->decode(r->type, count, r->wire, data, r->job.lane->stream);
}

/* ---- parts of a job ---- */

/* nccl_issue */
static hpct_device_result issue_plain(void *argument, int part, nccl_channel **used)
{
    const hpct_comm_reduction *r = argument;
    bool in_16_bits = r->type != HPCT_DEVICE_FP32;
    hpct_device_result result;
    if (part == 1) {
        result = in_16_bits ? from_wire(r, r->at, r->options.count) : HPCT_DEVICE_OK;
        return result == HPCT_DEVICE_OK ? copy_out(r) : result;
    }
    result = copy_in(r);
    if (result != HPCT_DEVICE_OK || floats_of(r) == 0)
        return result;
    *used = r->comm->channel;
    if (in_16_bits)
        return sum_on_wire(r, r->comm->channel, r->at, r->options.count, true);
    return r->comm->calls->all_reduce(r->at, floats_of(r), HPCT_DEVICE_FP32, r->comm->channel->nccl,
                                      r->job.lane->stream);
}

/* Sends to the owners of slices, or from them. */
static hpct_device_result within_group(const hpct_comm_reduction *r, bool collect)
{
    const nccl_groups *groups = &r->comm->groups;
    const hpct_device_calls *calls = r->comm->calls;
    void *nccl = groups->members->nccl, *stream = r->job.lane->stream;
    float *exact = r->at + r->options.count;
    batch b = begin(r);
    for (int owner = 0; owner < groups->grid.owners; owner++) {
        hpct_comm_slice_range slice =
            hpct_comm_grid_part(r->options.count, groups->grid.owners, owner);
        float *at = r->at + slice.begin;
        if (slice.count == 0)
            continue;
        add(&b, collect ? calls->reduce(at, slice.count, HPCT_DEVICE_FP32, owner, nccl, stream)
                        : calls->broadcast(at, slice.count, HPCT_DEVICE_FP32, owner, nccl, stream));
    }
    if (r->options.exact > 0)
        add(&b, collect
                    ? calls->reduce(exact, r->options.exact, HPCT_DEVICE_FP32, 0, nccl, stream)
                    : calls->broadcast(exact, r->options.exact, HPCT_DEVICE_FP32, 0, nccl, stream));
    return end(&b);
}

/* nccl_issue. Only the first owners sum the exact values, so that all ranks get the same bits. */
static hpct_device_result issue_grouped(void *argument, int part, nccl_channel **used)
{
    const hpct_comm_reduction *r = argument;
    const nccl_groups *groups = &r->comm->groups;
    float *slice = r->at + r->slice.begin;
    bool owns = groups->column != NULL;
    hpct_device_result result;
    switch (part) {
    case 0:
        result = copy_in(r);
        if (result != HPCT_DEVICE_OK)
            return result;
        *used = groups->members;
        return within_group(r, true);
    case 1:
        *used = owns ? groups->column : NULL;
        return owns
                   ? sum_on_wire(r, groups->column, slice, r->slice.count, groups->grid.member == 0)
                   : HPCT_DEVICE_OK;
    case 2:
        result = owns ? from_wire(r, slice, r->slice.count) : HPCT_DEVICE_OK;
        if (result != HPCT_DEVICE_OK)
            return result;
        *used = groups->members;
        return within_group(r, false);
    default:
        return copy_out(r);
    }
}

/* ---- groups ---- */

static int count_groups(const int *groups, int size)
{
    int num = 0;
    for (int rank = 0; rank < size; rank++) {
        int first = 0;
        while (groups[first] != groups[rank])
            first++;
        num += first == rank;
    }
    return num;
}

void hpct_nccl_groups_close(nccl_groups *groups, bool abandon)
{
    hpct_nccl_channel_close(groups->column, abandon);
    hpct_nccl_channel_close(groups->members, abandon);
    hpct_comm_grid_free(&groups->grid);
    free(groups->of);
    *groups = (nccl_groups){0};
}

static hpct_status make_groups(nccl_comm *comm, const int *of)
{
    nccl_groups *groups = &comm->groups;
    size_t bytes = (size_t) comm->base.size * sizeof *of;
    groups->of = malloc(bytes);
    if (groups->of == NULL)
        return hpct_fail_memory(bytes);
    memcpy(groups->of, of, bytes);
    HPCT_TRY(hpct_comm_grid_make(&groups->grid, of, comm->base.rank, comm->base.size));
    HPCT_TRY(hpct_nccl_rest(comm));
    HPCT_TRY(
        hpct_nccl_channel_split(&groups->members, comm, groups->grid.members[0], comm->base.rank));
    return hpct_nccl_channel_split(&groups->column, comm,
                                   groups->grid.column != NULL ? groups->grid.member : -1,
                                   comm->base.rank);
}

/* Groups only matter for 16 bits; in fp32 NCCL exploits the nodes itself. Only the first grouping
 * of the ranks gets communicators: others are ignored. */
static hpct_status choose_way(hpct_comm_reduction *r)
{
    nccl_comm *comm = r->comm;
    const int *groups = r->options.groups;
    int num = groups == NULL ? comm->base.size : count_groups(groups, comm->base.size);
    if (num == 1)
        r->type = HPCT_DEVICE_FP32; /* no messages between groups */
    if (r->type == HPCT_DEVICE_FP32 || num == comm->base.size)
        return HPCT_OK;
    if (comm->groups.of == NULL) {
        hpct_status status = make_groups(comm, groups);
        if (status != HPCT_OK)
            return status;
    }
    r->grouped = memcmp(comm->groups.of, groups, (size_t) comm->base.size * sizeof *groups) == 0;
    if (r->grouped && comm->groups.column != NULL)
        r->slice = hpct_comm_grid_part(r->options.count, comm->groups.grid.owners,
                                       comm->groups.grid.member);
    return HPCT_OK;
}

/* ---- the table's functions ---- */

static hpct_status allocate(hpct_comm_reduction *r)
{
    const hpct_device_calls *calls = r->comm->calls;
    size_t bytes = floats_of(r) * sizeof(float),
           on_wire = 2 * (r->grouped ? r->slice.count : r->options.count);
    void *memory = NULL;
    hpct_status status = HPCT_OK;
    if (r->type != HPCT_DEVICE_FP32 && on_wire > 0)
        status = hpct_nccl_check(r->comm, calls->allocate(&r->wire, on_wire), "a reduction");
    r->at = r->options.data;
    if (status != HPCT_OK || bytes == 0 || calls->is_device(r->options.data))
        return status;
    r->host = calloc(1, sizeof *r->host);
    if (r->host == NULL)
        return hpct_fail_memory(sizeof *r->host);
    r->at = NULL;
    HPCT_TRY(hpct_nccl_check(r->comm, calls->allocate(&memory, bytes), "a reduction"));
    r->at = memory;
    HPCT_TRY(hpct_nccl_check(r->comm, calls->allocate_host(&memory, bytes), "a reduction"));
    r->host->pinned = memory;
    return HPCT_OK;
}

hpct_status hpct_nccl_prepare(hpct_comm *comm, hpct_comm_reduction **out,
                              const hpct_comm_reduction_options *options)
{
    hpct_comm_reduction *r = calloc(1, sizeof *r);
    if (r == NULL)
        return hpct_fail_memory(sizeof *r);
    r->comm = (nccl_comm *) comm;
    r->options = *options;
    r->type = options->wire == HPCT_WIRE_BF16   ? HPCT_DEVICE_BF16
              : options->wire == HPCT_WIRE_FP16 ? HPCT_DEVICE_FP16
                                                : HPCT_DEVICE_FP32;
    hpct_status status = choose_way(r);
    r->options.groups = NULL;
    if (status == HPCT_OK)
        status = allocate(r);
    if (status == HPCT_OK)
        status =
            hpct_nccl_job_make(&r->job, r->comm, r->comm->lane, "a reduction",
                               r->grouped ? issue_grouped : issue_plain, r, r->grouped ? 4 : 2);
    if (status != HPCT_OK) {
        hpct_nccl_release(r);
        return status;
    }
    *out = r;
    return HPCT_OK;
}

hpct_status hpct_nccl_start(hpct_comm_reduction *r)
{
    if (r->host != NULL) {
        memcpy(r->host->pinned, r->options.data, floats_of(r) * sizeof(float));
        r->host->due = true;
    }
    return hpct_nccl_queue(&r->job);
}

hpct_status hpct_nccl_progress(hpct_comm *comm)
{
    return hpct_nccl_pump((nccl_comm *) comm);
}

static void land(const hpct_comm_reduction *r)
{
    if (r->host == NULL || !r->host->due)
        return;
    memcpy(r->options.data, r->host->pinned, floats_of(r) * sizeof(float));
    r->host->due = false;
}

bool hpct_nccl_is_done(const hpct_comm_reduction *r)
{
    if (!hpct_nccl_ended(&r->job))
        return false;
    land(r);
    return true;
}

/* For device data the compute stream waits; for host data the host. */
hpct_status hpct_nccl_wait(hpct_comm_reduction *r)
{
    HPCT_TRY(r->host != NULL ? hpct_nccl_finish(&r->job) : hpct_nccl_follow(&r->job));
    land(r);
    return HPCT_OK;
}

/* If the group has failed, kernels may never end: their memory is not freed. */
void hpct_nccl_release(hpct_comm_reduction *r)
{
    if (r == NULL)
        return;
    const hpct_device_calls *calls = r->comm->calls;
    hpct_nccl_forget(&r->job);
    if (r->job.done == NULL || hpct_nccl_ended(&r->job)) {
        hpct_nccl_job_free(&r->job);
        if (r->wire != NULL)
            calls->release(r->wire);
        if (r->host != NULL && r->at != NULL)
            calls->release(r->at);
        if (r->host != NULL && r->host->pinned != NULL)
            calls->release_host(r->host->pinned);
    }
    free(r->host);
    free(r);
}
