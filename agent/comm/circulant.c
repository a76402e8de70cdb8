/* Reduce-scatter and all-gather on circulant graphs. */
#include "agent/comm/circulant.h"

#include "agent/comm/grid.h"
#include "agent/comm/peers.h"
#include "agent/comm/wire.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 32
#define FEW_FLOATS                                                                                 \
    8192 /* limit over all ranks: gathered and summed by each rank; half the messages */

struct hpct_comm_circulant {
    int rank, size, rounds;
    int span[MAX_ROUNDS + 1]; /* size, ceil(size/2), … 1: blocks with partial sums, by round */
    hpct_comm_peers *peers;
    size_t most;
    float *room;         /* received data before it is added; records of a small sum */
    const float **terms; /* [size] */
};

/* Data to gather or sum, with a block for each rank: its rows of [rows][width] floats, or, if width
 * is 0, its part of [rows] by hpct_comm_grid_part. With `in_bytes` rows are bytes; then root >= 0
 * puts all of them into that rank's block. */
typedef struct blocks {
    void *data;
    size_t rows, width;
    bool in_bytes;
    int root;
} blocks;

static int ahead(const hpct_comm_circulant *c, int distance)
{
    return (c->rank + distance + c->size) % c->size;
}

/* The first ranks have one row more if the division leaves a remainder. */
static size_t first_row(const hpct_comm_circulant *c, size_t rows, size_t rank)
{
    size_t size = (size_t) c->size, more = rows % size;
    return rows / size * rank + (rank < more ? rank : more);
}

static size_t begin_of(const hpct_comm_circulant *c, const blocks *b, int block)
{
    if (b->in_bytes && b->root >= 0)
        return block > b->root ? b->rows : 0;
    if (b->width > 0)
        return first_row(c, b->rows, (size_t) block) * b->width;
    return block == c->size ? b->rows : hpct_comm_grid_part(b->rows, c->size, block).begin;
}

static struct iovec piece(const hpct_comm_circulant *c, const blocks *b, int first, int end)
{
    size_t begin = begin_of(c, b, first), unit = b->in_bytes ? 1 : sizeof(float);
    return (struct iovec){(char *) b->data + begin * unit, (begin_of(c, b, end) - begin) * unit};
}

/* Pieces for `num` blocks from that of the rank `distance` ahead on, wrapping around to block 0. */
static void set_pieces(const hpct_comm_circulant *c, const blocks *b, int distance, int num,
                       struct iovec pieces[2])
{
    int first = ahead(c, distance), end = first + num;
    pieces[0] = piece(c, b, first, end < c->size ? end : c->size);
    pieces[1] = end > c->size ? piece(c, b, 0, end - c->size) : (struct iovec){0};
}

/* Adds the received `room` to the blocks of `to`. */
static void add(const float *room, const hpct_comm_peers_message *to)
{
    for (int i = 0; i < HPCT_COMM_PEERS_PIECES; i++) {
        size_t count = to->pieces[i].iov_len / sizeof *room;
        float *sum = to->pieces[i].iov_base;
        if (count > 0)
            hpct_comm_wire_sum(count, (const float *[]){sum, room}, 2, sum);
        room += count;
    }
}

/* Reduce-scatter: in each round a rank keeps the first span[round + 1] of its span[round] blocks
 * and sends the rest. */
static hpct_status scatter(hpct_comm_circulant *c, const blocks *b)
{
    hpct_status status = HPCT_OK;
    for (int round = 0; round < c->rounds && status == HPCT_OK; round++) {
        int keep = c->span[round + 1], pass = c->span[round] - keep;
        hpct_comm_peers_message out = {.rank = ahead(c, keep)}, in = {.rank = ahead(c, -keep)},
                                sums = in;
        set_pieces(c, b, keep, pass, out.pieces);
        set_pieces(c, b, 0, pass, sums.pieces);
        in.pieces[0] = (struct iovec){c->room, sums.pieces[0].iov_len + sums.pieces[1].iov_len};
        status = hpct_comm_peers_exchange(c->peers, &out, &in);
        if (status == HPCT_OK)
            add(c->room, &sums);
    }
    return status;
}

/* All-gather of one or two arrays at once. */
static hpct_status gather(hpct_comm_circulant *c, const blocks *b, int num)
{
    hpct_status status = HPCT_OK;
    for (int round = c->rounds - 1; round >= 0 && status == HPCT_OK; round--) {
        int have = c->span[round + 1], more = c->span[round] - have;
        hpct_comm_peers_message out = {.rank = ahead(c, -have)}, in = {.rank = ahead(c, have)};
        for (int i = 0; i < num; i++) {
            set_pieces(c, &b[i], 0, more, out.pieces + (ptrdiff_t) 2 * i);
            set_pieces(c, &b[i], have, more, in.pieces + (ptrdiff_t) 2 * i);
        }
        status = hpct_comm_peers_exchange(c->peers, &out, &in);
    }
    return status;
}

hpct_status hpct_comm_circulant_gather(hpct_comm_circulant *c, const float *mine, float *all,
                                       size_t count)
{
    blocks b = {.data = all, .rows = (size_t) c->size, .width = count};
    if (count == 0)
        return HPCT_OK;
    memcpy(all + (size_t) c->rank * count, mine, count * sizeof *mine);
    return gather(c, &b, 1);
}

hpct_status hpct_comm_circulant_gather_bytes(hpct_comm_circulant *c, const void *mine, void *all,
                                             size_t bytes)
{
    blocks b = {
        .data = all, .rows = (size_t) c->size, .width = bytes, .in_bytes = true, .root = -1};
    if (bytes == 0)
        return HPCT_OK;
    memcpy((char *) all + (size_t) c->rank * bytes, mine, bytes);
    return gather(c, &b, 1);
}

/* A gather in which only the root's block has data. */
hpct_status hpct_comm_circulant_broadcast(hpct_comm_circulant *c, void *data, size_t bytes,
                                          int root)
{
    blocks b = {.data = data, .rows = bytes, .in_bytes = true, .root = root};
    return gather(c, &b, 1);
}

/* Sums the records of all ranks, in the order of ranks. */
static void add_up(hpct_comm_circulant *c, const float *records, size_t count, float *data)
{
    for (int rank = 0; rank < c->size; rank++)
        c->terms[rank] = records + (size_t) rank * count;
    hpct_comm_wire_sum(count, c->terms, c->size, data);
}

static hpct_status sum_few(hpct_comm_circulant *c, float *data, size_t count)
{
    HPCT_TRY(hpct_comm_circulant_gather(c, data, c->room, count));
    add_up(c, c->room, count, data);
    return HPCT_OK;
}

static hpct_status check_size(const hpct_comm_circulant *c, size_t count)
{
    return count <= c->most ? HPCT_OK
                            : hpct_fail(HPCT_ERR_INTERNAL,
                                        "a sum of %zu floats, where %zu are most", count, c->most);
}

hpct_status hpct_comm_circulant_sum(hpct_comm_circulant *c, float *data, size_t count)
{
    blocks b = {.data = data, .rows = count};
    HPCT_TRY(check_size(c, count));
    if (count < hpct_comm_circulant_halves_from(c))
        return sum_few(c, data, count);
    HPCT_TRY(scatter(c, &b));
    return gather(c, &b, 1);
}

hpct_status hpct_comm_circulant_reduce(hpct_comm_circulant *c, float *data, size_t rows,
                                       size_t width, size_t *first, size_t *own)
{
    blocks b = {.data = data, .rows = rows, .width = width};
    hpct_status status = check_size(c, rows * width);
    *first = first_row(c, rows, (size_t) c->rank);
    *own = first_row(c, rows, (size_t) c->rank + 1) - *first;
    return status == HPCT_OK ? scatter(c, &b) : status;
}

hpct_status hpct_comm_circulant_spread(hpct_comm_circulant *c, float *data, size_t rows,
                                       size_t width, float *piggyback, size_t num)
{
    blocks b[] = {{.data = data, .rows = rows, .width = width},
                  {.data = c->room, .rows = (size_t) c->size, .width = num}};
    if (num > HPCT_COMM_CIRCULANT_PIGGYBACK)
        return hpct_fail(HPCT_ERR_INTERNAL, "%zu piggybacked values", num);
    if (num > 0)
        memcpy(c->room + (size_t) c->rank * num, piggyback, num * sizeof *piggyback);
    HPCT_TRY(gather(c, b, num > 0 ? 2 : 1));
    if (num > 0)
        add_up(c, c->room, num, piggyback);
    return HPCT_OK;
}

size_t hpct_comm_circulant_halves_from(const hpct_comm_circulant *c)
{
    return FEW_FLOATS / (size_t) c->size + 1;
}

static void find_rounds(hpct_comm_circulant *c)
{
    int span = c->span[0] = c->size;
    while (span > 1) {
        span = (span + 1) / 2;
        c->span[++c->rounds] = span;
    }
}

void hpct_comm_circulant_want(int rank, int size, bool *wanted)
{
    for (int span = size; span > 1;) {
        span = (span + 1) / 2;
        wanted[(rank + span) % size] = wanted[(rank - span + size) % size] = true;
    }
}

/* Without connections yet; NULL if out of memory. */
static hpct_comm_circulant *circulant_new(int rank, int size, size_t most)
{
    size_t ranks = (size_t) size, block = hpct_comm_grid_part(most, size, 0).count,
           room = ranks * block; /* half of it is received in one message */
    room = room > FEW_FLOATS ? room : FEW_FLOATS;
    room =
        room > ranks * HPCT_COMM_CIRCULANT_PIGGYBACK ? room : ranks * HPCT_COMM_CIRCULANT_PIGGYBACK;
    hpct_comm_circulant *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (hpct_comm_circulant){.rank = rank, .size = size, .most = most};
    c->room = malloc(room * sizeof *c->room);
    c->terms = calloc(ranks, sizeof *c->terms);
    if (c->room == NULL || c->terms == NULL) {
        hpct_comm_circulant_close(c);
        return NULL;
    }
    find_rounds(c);
    return c;
}

hpct_status hpct_comm_circulant_open(hpct_comm_circulant **out, hpct_comm *comm, size_t most,
                                     int seconds)
{
    hpct_comm_circulant *c = circulant_new(comm->rank, comm->size, most);
    bool *wanted = calloc((size_t) comm->size, sizeof *wanted);
    float missing = c == NULL || wanted == NULL;
    hpct_status status = comm->ops->allreduce_sum(comm, &missing, 1);
    if (status == HPCT_OK && missing > 0)
        status = hpct_fail_memory(most * sizeof *c->room);
    if (status == HPCT_OK) {
        hpct_comm_circulant_want(comm->rank, comm->size, wanted);
        status = hpct_comm_peers_open(&c->peers, comm, wanted, seconds);
    }
    free(wanted);
    if (status != HPCT_OK) {
        hpct_comm_circulant_close(c);
        return status;
    }
    *out = c;
    return HPCT_OK;
}

hpct_status hpct_comm_circulant_over(hpct_comm_circulant **out, hpct_comm_peers *peers, int rank,
                                     int size, size_t most)
{
    hpct_comm_circulant *c = circulant_new(rank, size, most);
    if (c == NULL) {
        hpct_comm_peers_close(peers);
        return hpct_fail_memory(most * sizeof *c->room);
    }
    c->peers = peers;
    *out = c;
    return HPCT_OK;
}

void hpct_comm_circulant_close(hpct_comm_circulant *c)
{
    if (c == NULL)
        return;
    hpct_comm_peers_close(c->peers);
    free(c->room);
    free(c->terms);
    free(c);
}
