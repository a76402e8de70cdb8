/* Reductions that progress while the ranks compute: messages between the ranks of a grid
 * (agent/comm/grid.h), prepared once, in up to four phases; a phase's data is summed when all of it
 * has arrived.
 *
 * Instead of MPI_Iallreduce: the order of summation is fixed, 16-bit values are summed in fp32,
 * there are two rounds of messages for any number of ranks, where Open MPI's ring has 2 (ranks -
 * 1), each of which needs an MPI call to progress; and a step allocates nothing. */
#include "agent/comm/reduction.h"

#include "agent/comm/agree.h"
#include "agent/comm/wire.h"
#include "base/debug.h"
#include "base/progress.h"
#include "base/status.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef enum phase_name {
    COLLECT, /* within the group: each owner gets its slice from all members */
    SCATTER, /* within the column: each rank gets its part of the slice from all owners */
    GATHER,  /* summed parts back to all owners */
    SPREAD,  /* within the group: owners give their slices to all members */
    PHASES
} phase_name;

/* Tags of one reduction: per phase one for values and one for exact values. */
#define TAGS (2 * PHASES)
#define MAX_TAG (1 << 20) /* MPI guarantees 32767; Open MPI has 2^31 - 1 */

typedef struct phase {
    void *requests;
    int num;
    hpct_comm_letter *letters;
    int num_letters;
} phase;

struct hpct_comm_reduction {
    hpct_comm_host_comm *host;
    hpct_comm_reduction_options options;
    hpct_comm_grid grid;
    hpct_comm_slice_range slice; /* owned by this rank within its group; in floats of data */
    phase phases[PHASES];
    hpct_comm_reduction *next; /* list of those in flight */
    int at;                    /* current phase; PHASES: none */
    int tag;
    float *collected;   /* [num_members][slice.count], then exact values, as received */
    float *scattered;   /* [num_groups][part], in fp32 or encoded, then exact values */
    float *encoded;     /* [num_groups] messages of the slice's parts; NULL in fp32 */
    size_t *encoded_at; /* [num_groups + 1] */
    const float **terms;
};

static bool owns(const hpct_comm_reduction *r)
{
    return r->grid.column != NULL;
}

static hpct_comm_slice_range part_of(const hpct_comm_reduction *r, int row)
{
    hpct_comm_slice_range part = hpct_comm_grid_part(r->slice.count, r->grid.num_groups, row);
    part.begin += r->slice.begin;
    return part;
}

static hpct_comm_slice_range own_part(const hpct_comm_reduction *r)
{
    return part_of(r, r->grid.row);
}

static bool in_16_bits(const hpct_comm_reduction *r)
{
    return r->options.wire != HPCT_WIRE_FP32;
}

static size_t message_floats(const hpct_comm_reduction *r, size_t count)
{
    return count == 0 ? 0 : in_16_bits(r) ? hpct_comm_wire_floats(count) : count;
}

static float *exact_numbers(const hpct_comm_reduction *r)
{
    return r->options.data + r->options.count;
}

static float *collected_from(const hpct_comm_reduction *r, int member)
{
    return r->collected + (size_t) member * (r->slice.count + r->options.exact);
}

static float *scattered_from(const hpct_comm_reduction *r, int row)
{
    return r->scattered + (size_t) row * (message_floats(r, own_part(r).count) + r->options.exact);
}

/* ---- messages, prepared once ---- */

static hpct_status add_message(hpct_comm_reduction *r, phase_name name, bool exact, bool receive,
                               float *data, size_t floats, int peer)
{
    phase *p = &r->phases[name];
    int tag = r->tag + 2 * (int) name + exact;
    if (floats == 0)
        return HPCT_OK;
    if (hpct_comm_mail_reaches(r->host->mail, peer)) {
        hpct_comm_letter *letter = &p->letters[p->num_letters++];
        /* Returning exact values may arrive while their buffer is still being sent to another
         * owner. */
        *letter = (hpct_comm_letter){.rank = peer,
                                     .receives = receive,
                                     .early = name != SPREAD || !exact,
                                     .tag = (uint32_t) tag,
                                     .data = (char *) data,
                                     .bytes = floats * sizeof *data};
        return receive ? hpct_comm_mail_expect(r->host->mail, letter) : HPCT_OK;
    }
    const hpct_comm_carrier *carrier = r->host->carrier;
    return carrier->prepare(r->host,
                            (char *) p->requests + carrier->request_bytes * (size_t) p->num++,
                            &(hpct_comm_host_message){receive, peer, tag, data, floats});
}

/* Receives are prepared first in every phase, so that messages find their buffer. */
static hpct_status plan_group(hpct_comm_reduction *r, phase_name name, bool receive)
{
    const hpct_comm_grid *grid = &r->grid;
    float *data = r->options.data;
    bool collect = name == COLLECT;
    /* owner of the slice in this rank's messages: this rank, or the peer */
    bool mine = collect == receive;
    hpct_status status = HPCT_OK;
    for (int member = 0; member < grid->num_members && status == HPCT_OK; member++) {
        int owner = mine ? grid->member : member, peer = grid->members[member];
        if (member == grid->member || owner >= grid->owners)
            continue;
        hpct_comm_slice_range slice = hpct_comm_grid_part(r->options.count, grid->owners, owner);
        bool arrives = collect && receive;
        float *at = arrives ? collected_from(r, member) : data + slice.begin;
        status = add_message(r, name, false, receive, at, slice.count, peer);
        /* all owners sum the exact values; ranks that own nothing get them from the first owner */
        bool wanted = collect || (owner == 0 && (receive ? grid->member : member) >= grid->owners);
        if (status == HPCT_OK && wanted)
            status =
                add_message(r, name, true, receive, arrives ? at + slice.count : exact_numbers(r),
                            r->options.exact, peer);
    }
    return status;
}

static hpct_status plan_column(hpct_comm_reduction *r, phase_name name, bool receive)
{
    const hpct_comm_grid *grid = &r->grid;
    bool scatter = name == SCATTER, mine = scatter == receive;
    hpct_status status = HPCT_OK;
    for (int row = 0; row < grid->num_groups && status == HPCT_OK; row++) {
        int peer = grid->column[row], whose = mine ? grid->row : row;
        hpct_comm_slice_range part = part_of(r, whose);
        bool arrives = scatter && receive;
        if (row == grid->row)
            continue;
        float *at = arrives         ? scattered_from(r, row)
                    : in_16_bits(r) ? r->encoded + r->encoded_at[whose]
                                    : r->options.data + part.begin;
        size_t floats = message_floats(r, part.count);
        status = add_message(r, name, false, receive, at, floats, peer);
        if (status == HPCT_OK && scatter)
            status = add_message(r, name, true, receive, arrives ? at + floats : exact_numbers(r),
                                 r->options.exact, peer);
    }
    return status;
}

static hpct_status plan_messages(hpct_comm_reduction *r)
{
    hpct_status status = HPCT_OK;
    for (int receive = 1; receive >= 0 && status == HPCT_OK; receive--) {
        for (int name = COLLECT; name < PHASES && status == HPCT_OK; name++) {
            if (name == COLLECT || name == SPREAD)
                status = plan_group(r, (phase_name) name, receive == 1);
            else if (owns(r))
                status = plan_column(r, (phase_name) name, receive == 1);
        }
    }
    return status;
}

/* ---- memory ---- */

static bool allocate_array(void *pointer, size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    memcpy(pointer, &memory, sizeof memory);
    return memory != NULL;
}

static hpct_status allocate(hpct_comm_reduction *r)
{
    const hpct_comm_grid *grid = &r->grid;
    size_t members = (size_t) grid->num_members, groups = (size_t) grid->num_groups;
    size_t most = members > groups ? members : groups;
    bool ok = allocate_array(&r->terms, most, sizeof *r->terms);
    for (int name = 0; name < PHASES; name++)
        ok = ok &&
             allocate_array(&r->phases[name].requests, 4 * most, r->host->carrier->request_bytes) &&
             allocate_array(&r->phases[name].letters, 4 * most, sizeof(hpct_comm_letter));
    if (owns(r)) {
        if (grid->num_members > 1)
            ok = ok && allocate_array(&r->collected, members * (r->slice.count + r->options.exact),
                                      sizeof(float));
        ok = ok && allocate_array(&r->encoded_at, groups + 1, sizeof *r->encoded_at);
        for (int row = 0; ok && row < grid->num_groups; row++)
            r->encoded_at[row + 1] = r->encoded_at[row] + message_floats(r, part_of(r, row).count);
        if (in_16_bits(r))
            ok = ok && allocate_array(&r->encoded, r->encoded_at[groups], sizeof(float));
        ok =
            ok && allocate_array(&r->scattered,
                                 groups * (message_floats(r, own_part(r).count) + r->options.exact),
                                 sizeof(float));
    }
    return ok ? HPCT_OK : hpct_fail_memory(r->options.count * sizeof(float));
}

static hpct_status make(hpct_comm_reduction *r, hpct_comm_host_comm *host,
                        const hpct_comm_reduction_options *options)
{
    r->host = host;
    r->options = *options;
    r->options.groups = NULL;
    r->at = PHASES;
    r->tag = host->tag;
    HPCT_TRY(hpct_comm_grid_make(&r->grid, options->groups, host->base.rank, host->base.size));
    if (owns(r))
        r->slice = hpct_comm_grid_part(options->count, r->grid.owners, r->grid.member);
    return allocate(r);
}

hpct_status hpct_comm_reduction_prepare(hpct_comm *comm, hpct_comm_reduction **out,
                                        const hpct_comm_reduction_options *options)
{
    hpct_comm_host_comm *host = (hpct_comm_host_comm *) comm;
    hpct_status status = HPCT_OK;
    if (options->count > INT_MAX || host->tag > MAX_TAG)
        return hpct_fail(HPCT_ERR_INTERNAL, "a reduction of %zu floats, number %d", options->count,
                         host->tag / TAGS);
    hpct_comm_reduction *r = calloc(1, sizeof *r);
    hpct_status own = r != NULL ? make(r, host, options) : hpct_fail_memory(sizeof *r);
    if (host->carrier->open_mail != NULL)
        status = host->carrier->open_mail(host, own == HPCT_OK ? &r->grid : NULL);
    host->tag += TAGS;
    status = own != HPCT_OK ? own : status;
    if (status == HPCT_OK)
        status = plan_messages(r);
    if (!host->without_mail)
        status = hpct_comm_agree(comm, status, "prepare a sum");
    if (status != HPCT_OK) {
        hpct_comm_reduction_release(r);
        return status;
    }
    hpct_debug(HPCT_DEBUG_COMM,
               "rank %d of %d: a sum of %zu floats as %s over %s, %d owners in each group",
               comm->rank, comm->size, options->count,
               (const char *const[]){"fp32", "bf16", "fp16"}[options->wire], comm->ops->name,
               r->grid.owners);
    *out = r;
    return HPCT_OK;
}

void hpct_comm_reduction_release(hpct_comm_reduction *r)
{
    if (r == NULL)
        return;
    for (int name = 0; name < PHASES; name++) {
        phase *p = &r->phases[name];
        if (p->num > 0 && r->at == PHASES)
            r->host->carrier->free(p->requests, p->num);
        for (int i = 0; i < p->num_letters; i++)
            hpct_comm_mail_forget(r->host->mail, &p->letters[i]);
        free(p->requests);
        free(p->letters);
    }
    hpct_comm_grid_free(&r->grid);
    free(r->collected);
    free(r->scattered);
    free(r->encoded);
    free(r->encoded_at);
    free(r->terms);
    free(r);
}

/* ---- progress ---- */

static void add_up_group(hpct_comm_reduction *r)
{
    const hpct_comm_grid *grid = &r->grid;
    for (int member = 0; member < grid->num_members; member++)
        r->terms[member] =
            member == grid->member ? r->options.data + r->slice.begin : collected_from(r, member);
    hpct_comm_wire_sum(r->slice.count, r->terms, grid->num_members,
                       r->options.data + r->slice.begin);
    for (int member = 0; member < grid->num_members; member++)
        r->terms[member] =
            member == grid->member ? exact_numbers(r) : collected_from(r, member) + r->slice.count;
    hpct_comm_wire_sum(r->options.exact, r->terms, grid->num_members, exact_numbers(r));
}

static void encode_parts(hpct_comm_reduction *r)
{
    for (int row = 0; row < r->grid.num_groups; row++) {
        hpct_comm_slice_range part = part_of(r, row);
        if (part.count > 0)
            hpct_comm_wire_encode(r->options.wire, part.count, r->options.data + part.begin,
                                  r->encoded + r->encoded_at[row]);
    }
}

/* Sums every group's part, also this one's, in its rounded form: the sum does not depend on its
 * owner. */
static void add_up_encoded(hpct_comm_reduction *r)
{
    hpct_comm_slice_range part = own_part(r);
    float *sum = r->options.data + part.begin, *own = r->encoded + r->encoded_at[r->grid.row];
    for (int row = 0; row < r->grid.num_groups && part.count > 0; row++) {
        const float *message = row == r->grid.row ? own : scattered_from(r, row);
        (row == 0 ? hpct_comm_wire_decode : hpct_comm_wire_add)(r->options.wire, part.count,
                                                                message, sum);
    }
    if (part.count > 0) {
        hpct_comm_wire_encode(r->options.wire, part.count, sum, own);
        hpct_comm_wire_decode(r->options.wire, part.count, own, sum);
    }
}

static void add_up_column(hpct_comm_reduction *r)
{
    const hpct_comm_grid *grid = &r->grid;
    hpct_comm_slice_range part = own_part(r);
    size_t floats = message_floats(r, part.count);
    if (in_16_bits(r)) {
        add_up_encoded(r);
    } else {
        for (int row = 0; row < grid->num_groups; row++)
            r->terms[row] =
                row == grid->row ? r->options.data + part.begin : scattered_from(r, row);
        hpct_comm_wire_sum(part.count, r->terms, grid->num_groups, r->options.data + part.begin);
    }
    for (int row = 0; row < grid->num_groups; row++)
        r->terms[row] = row == grid->row ? exact_numbers(r) : scattered_from(r, row) + floats;
    hpct_comm_wire_sum(r->options.exact, r->terms, grid->num_groups, exact_numbers(r));
}

static void decode_parts(hpct_comm_reduction *r)
{
    for (int row = 0; row < r->grid.num_groups; row++) {
        hpct_comm_slice_range part = part_of(r, row);
        if (row != r->grid.row && part.count > 0)
            hpct_comm_wire_decode(r->options.wire, part.count, r->encoded + r->encoded_at[row],
                                  r->options.data + part.begin);
    }
}

static hpct_status enter_phase(hpct_comm_reduction *r)
{
    phase *p = &r->phases[r->at];
    hpct_status status = HPCT_OK;
    if (r->at == SCATTER && owns(r) && in_16_bits(r))
        encode_parts(r);
    if (p->num > 0)
        status = r->host->carrier->start(p->requests, p->num);
    for (int i = 0; i < p->num_letters && status == HPCT_OK; i++)
        status = hpct_comm_mail_start(r->host->mail, &p->letters[i]);
    return status;
}

static hpct_status has_arrived(const hpct_comm_reduction *r, int *arrived)
{
    const phase *p = &r->phases[r->at];
    *arrived = 1;
    for (int i = 0; i < p->num_letters && *arrived; i++)
        *arrived = p->letters[i].through;
    /* also if letters are missing: the call progresses the requests */
    int requests = 1;
    hpct_status status =
        p->num == 0 ? HPCT_OK : r->host->carrier->test(p->requests, p->num, &requests);
    *arrived = *arrived && requests;
    return status;
}

static void add_up_phase(hpct_comm_reduction *r)
{
    if (!owns(r))
        return;
    if (r->at == COLLECT && r->grid.num_members > 1)
        add_up_group(r);
    else if (r->at == SCATTER && (r->grid.num_groups > 1 || in_16_bits(r)))
        add_up_column(r);
    else if (r->at == GATHER && in_16_bits(r))
        decode_parts(r);
}

static void leave_phase(hpct_comm_reduction *r)
{
    phase *p = &r->phases[r->at];
    add_up_phase(r);
    for (int i = 0; i < p->num_letters; i++)
        hpct_comm_mail_renew(&p->letters[i]);
}

/* Advances through all phases whose messages have arrived. */
static hpct_status advance(hpct_comm_reduction *r)
{
    hpct_status status = HPCT_OK;
    int arrived = 1;
    while (r->at < PHASES && status == HPCT_OK) {
        status = has_arrived(r, &arrived);
        if (status != HPCT_OK || !arrived)
            return status;
        leave_phase(r);
        hpct_count_progress();
        r->at++;
        if (r->at < PHASES)
            status = enter_phase(r);
    }
    return status;
}

hpct_status hpct_comm_reduction_start(hpct_comm_reduction *r)
{
    hpct_comm_reduction **last = &r->host->under_way;
    while (*last != NULL)
        last = &(*last)->next;
    *last = r; /* in the order of their start */
    r->at = COLLECT;
    return enter_phase(r);
}

hpct_status hpct_comm_reduction_progress(hpct_comm *comm)
{
    hpct_comm_host_comm *host = (hpct_comm_host_comm *) comm;
    hpct_status status =
        host->mail != NULL && host->under_way != NULL ? host->carrier->move(host, false) : HPCT_OK;
    for (hpct_comm_reduction **at = &host->under_way; *at != NULL && status == HPCT_OK;) {
        hpct_comm_reduction *r = *at;
        status = advance(r);
        if (r->at == PHASES) {
            *at = r->next;
            r->next = NULL;
        } else {
            at = &r->next;
        }
    }
    return status;
}

bool hpct_comm_reduction_is_done(const hpct_comm_reduction *r)
{
    return r->at == PHASES;
}

/* Whether reductions have MPI requests in flight, which progress in MPI calls only. */
static bool has_requests(const hpct_comm_host_comm *host)
{
    bool any = false;
    for (const hpct_comm_reduction *r = host->under_way; r != NULL; r = r->next)
        any = any || r->phases[r->at].num > 0;
    return any;
}

/* Sleeps if only letters are in flight. */
static hpct_status nap(hpct_comm_host_comm *host)
{
    return host->mail == NULL || has_requests(host) ? HPCT_OK : host->carrier->move(host, true);
}

/* Progresses all reductions: other ranks may first wait for this rank's part in another one. */
hpct_status hpct_comm_reduction_wait(hpct_comm_reduction *r)
{
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    hpct_status status = hpct_comm_reduction_progress(&r->host->base);
    while (r->at < PHASES && status == HPCT_OK) {
        status = nap(r->host);
        if (status == HPCT_OK)
            status = hpct_comm_reduction_progress(&r->host->base);
    }
    hpct_enter_wait(before);
    return status;
}
