/* NCCL between processes of one machine and devices of one process, through shared memory. Without
 * HPC_TRAIN_TEST_NCCL it is not there.
 *
 * A collective is a thread's, that meets those of the other ranks, while devices go on. Ranks that
 * ask for different things end, and say for what. */
#include "tests/gpu_without/machine/numbers.h"
#include "tests/gpu_without/machine/streams.h"

#include <atomic>
#include <dlfcn.h>
#include <fcntl.h>
#include <memory>
#include <nccl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

using namespace emulated;

namespace
{

constexpr size_t CHUNK = (size_t) 1 << 16; /* bytes of each rank at a time */
constexpr int MOST_RANKS = 8, PATIENCE = 60 /* seconds */;

struct request { /* all ranks ask for the same */
    char kind[16];
    size_t bytes;
    int type, root;
};

struct box { /* from one rank to another */
    std::atomic<int> full;
    size_t bytes;
    unsigned char chunk[CHUNK];
};

struct team { /* shared */
    std::atomic<int> arrived, rounds;
    request requests[MOST_RANKS];
    int colors[MOST_RANKS], keys[MOST_RANKS];
    unsigned char chunks[MOST_RANKS][CHUNK];
    box boxes[MOST_RANKS][MOST_RANKS];
};

struct transfer {
    bool sends;
    char *at;
    size_t bytes, done;
    int peer;
    bool taken; /* all that was sent */
};

} // namespace

struct ncclComm {
    team *shared;
    int size, rank, device;
    char name[NCCL_UNIQUE_ID_BYTES];
    int splits;
    std::atomic<int> under_way; /* calls that async_error waits for */
    std::atomic<bool> aborted, busy;
    std::shared_ptr<int> held = std::make_shared<int>(0); /* by what lies in streams and graphs */
    struct call {
        cudaStream_t stream;
        task what;
    };
    std::vector<call> queued; /* of the call under way */
};

namespace
{

thread_local int groups;
struct grouped {
    ncclComm_t comm;
    cudaStream_t stream;
    std::vector<transfer> transfers;
};
thread_local std::vector<grouped> pending;
struct grouped_task {
    ncclComm_t comm;
    cudaStream_t stream;
    task what;
};
thread_local std::vector<grouped_task> pending_tasks; /* collectives */

/* False when the communicator has been aborted. */
bool patient(const ncclComm *c, time_t began, const char *what)
{
    if (c->aborted)
        return false;
    if (time(nullptr) - began > PATIENCE)
        broken("NCCL, rank %d: %s", c->rank, what);
    const struct timespec nap = {0, 20000};
    nanosleep(&nap, nullptr);
    return true;
}

bool meet(ncclComm *c)
{
    team *t = c->shared;
    int round = t->rounds;
    time_t began = time(nullptr);
    if (++t->arrived == c->size) {
        t->arrived = 0;
        t->rounds++;
        return true;
    }
    for (int looks = 0; t->rounds == round; looks++) {
        if (looks < 100)
            sched_yield();
        else if (!patient(c, began, "the others did not come"))
            return false;
    }
    return true;
}

bool open_team(ncclComm *c)
{
    int file = shm_open(c->name, O_CREAT | O_RDWR, 0600);
    if (file < 0 || c->size > MOST_RANKS || ftruncate(file, sizeof(team)) != 0)
        broken("NCCL: no shared memory %s", c->name);
    void *memory = mmap(nullptr, sizeof(team), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        broken("NCCL: no shared memory");
    c->shared = (team *) memory;
    bool met = meet(c);
    if (c->rank == 0)
        shm_unlink(c->name);
    return met;
}

number number_of(ncclDataType_t type)
{
    return type == ncclFloat32 ? FP32 : type == ncclBfloat16 ? BF16 : FP16;
}

size_t size_of(ncclDataType_t type)
{
    return type == ncclUint8 ? 1 : bytes_of(number_of(type));
}

struct collective {
    ncclComm_t comm;
    char kind[16];
    const void *src;
    void *dst;
    size_t count;
    ncclDataType_t type;
    int root;
};

void check_alike(const ncclComm *c)
{
    const request &mine = c->shared->requests[c->rank];
    for (int rank = 0; rank < c->size; rank++) {
        const request &other = c->shared->requests[rank];
        if (memcmp(&mine, &other, sizeof mine) != 0)
            broken("NCCL: %s of %zu bytes on rank %d, %s of %zu bytes on rank %d", mine.kind,
                   mine.bytes, c->rank, other.kind, other.bytes, rank);
    }
}

void add_up(const ncclComm *c, unsigned char *to, size_t bytes, ncclDataType_t type)
{
    for (size_t i = 0; i < bytes / size_of(type); i++) {
        float sum = 0;
        for (int rank = 0; rank < c->size; rank++)
            sum += read(c->shared->chunks[rank], number_of(type), i);
        write(to, number_of(type), i, sum);
    }
}

void make(const collective &o)
{
    ncclComm *c = o.comm;
    team *t = c->shared;
    size_t bytes = o.count * size_of(o.type);
    bool reduces = strcmp(o.kind, "reduce") == 0;
    request *mine = &t->requests[c->rank];
    memset(mine, 0, sizeof *mine);
    memcpy(mine->kind, o.kind, sizeof mine->kind);
    mine->bytes = bytes;
    mine->type = (int) o.type;
    mine->root = o.root;
    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < CHUNK ? bytes - at : CHUNK;
        unsigned char *to = (unsigned char *) o.dst + at;
        memcpy(t->chunks[c->rank], (const unsigned char *) o.src + at, part);
        if (!meet(c))
            return;
        check_alike(c);
        if (strcmp(o.kind, "all-reduce") == 0 || (reduces && c->rank == o.root))
            add_up(c, to, part, o.type);
        else if (strcmp(o.kind, "broadcast") == 0)
            memcpy(to, t->chunks[o.root], part);
        for (int rank = 0; rank < c->size && strcmp(o.kind, "all-gather") == 0; rank++)
            memcpy(to + (size_t) rank * bytes, t->chunks[rank], part);
        if (!meet(c))
            return;
    }
}

bool move(ncclComm *c, transfer &t)
{
    box &b = t.sends ? c->shared->boxes[c->rank][t.peer] : c->shared->boxes[t.peer][c->rank];
    if (t.sends && t.done == t.bytes && t.bytes > 0 && b.full == 0)
        t.taken = true;
    if (t.done == t.bytes || (b.full != 0) == t.sends)
        return false;
    size_t part = t.bytes - t.done < CHUNK ? t.bytes - t.done : CHUNK;
    if (t.sends) {
        memcpy(b.chunk, t.at + t.done, part);
        b.bytes = part;
    } else {
        if (b.bytes != part)
            broken("NCCL: rank %d sent %zu bytes, and %zu were asked for", t.peer, b.bytes, part);
        memcpy(t.at + t.done, b.chunk, part);
    }
    t.done += part;
    b.full = t.sends;
    return true;
}

void make_transfers(ncclComm *c, std::vector<transfer> transfers)
{
    time_t began = time(nullptr);
    for (;;) {
        bool any = false, all = true;
        for (transfer &t : transfers) {
            any = move(c, t) || any;
            all = all && t.done == t.bytes && (!t.sends || t.taken || t.bytes == 0);
        }
        if (all)
            return;
        if (!any && !patient(c, began, "a peer did not send or receive"))
            return;
    }
}

/* A thread's, from when the stream comes to it; devices go on meanwhile. */
task beside(ncclComm *c, std::function<void()> body)
{
    return [c, body, held = c->held] {
        auto ended = std::make_shared<std::atomic<int>>(0); /* 1: runs, 2: has ended */
        return work([c, body, ended] {
            if (*ended == 0) {
                if (c->busy)
                    return false;
                c->busy = true;
                *ended = 1;
                keep_open(c->device, true);
                std::thread([=] {
                    body();
                    *ended = 2;
                }).detach();
            }
            if (*ended == 1)
                return false;
            keep_open(c->device, false);
            c->busy = false;
            return true;
        });
    };
}

ncclComm *issuing[8]; /* by device: who has been given work last */

/* While a call is under way there is no other on the communicator. */
void check_idle(const ncclComm *c, const char *call)
{
    if (c->aborted)
        broken("NCCL: %s on a communicator that was aborted", call);
    if (c->under_way > 0)
        broken("NCCL: %s while a call is in progress", call);
}

/* Nor on another one of the device, unless they are of one group: NCCL would put both into streams
 * at once, from threads of its own. */
void check_turn(ncclComm *c)
{
    ncclComm *&last = issuing[c->device];
    if (last != nullptr && last != c && last->under_way > 0 && !last->aborted)
        broken("NCCL: a call on one communicator of a device while one on another is in progress");
    last = c;
}

/* It lies in the stream when the communicator is not in progress any more, not sooner. */
void later(ncclComm *c, cudaStream_t stream, task what)
{
    if (groups > 0) {
        pending_tasks.push_back({c, stream, std::move(what)});
        return;
    }
    c->queued.push_back({stream, std::move(what)});
    c->under_way = 2;
}

ncclResult_t ask(const collective &o, cudaStream_t stream)
{
    turn t;
    check_idle(o.comm, o.kind);
    if (stream->device != o.comm->device || current_device() != o.comm->device)
        broken("NCCL: a stream of device %d for a communicator of device %d", stream->device,
               o.comm->device);
    if (refuses("nccl"))
        return ncclInternalError;
    if (groups == 0)
        check_turn(o.comm);
    later(o.comm, stream, beside(o.comm, [o] { make(o); }));
    return ncclInProgress;
}

ncclResult_t add_transfer(ncclComm_t comm, cudaStream_t stream, const transfer &t)
{
    for (grouped &g : pending) {
        if (g.comm == comm && g.stream == stream) {
            g.transfers.push_back(t);
            return ncclInProgress;
        }
    }
    pending.push_back({comm, stream, {t}});
    if (groups == 0) {
        ncclGroupStart();
        return ncclGroupEnd();
    }
    return ncclInProgress;
}

ncclComm_t new_comm(int size, int rank)
{
    ncclComm_t c = new ncclComm{};
    c->size = size;
    c->rank = rank;
    c->device = current_device();
    return c;
}

void meet_as(ncclComm_t c)
{
    c->under_way = 1000000;
    std::thread([c] {
        open_team(c);
        c->under_way = 2;
    }).detach();
}

} // namespace

extern "C" {

void *__real_dlopen(const char *name, int flags);

/* The module looks for NCCL by its name: it is here. */
void *__wrap_dlopen(const char *name, int flags)
{
    Dl_info here;
    if (name == nullptr || strstr(name, "nccl") == nullptr)
        return __real_dlopen(name, flags);
    if (getenv("HPC_TRAIN_TEST_NCCL") == nullptr)
        return __real_dlopen("libnccl-missing.so", flags);
    if (dladdr((void *) &__wrap_dlopen, &here) == 0)
        broken("dladdr");
    return __real_dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

#pragma GCC visibility push(default)

ncclResult_t ncclGetVersion(int *version)
{
    *version = 22800;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t)
{
    return "an emulated error";
}

const char *ncclGetLastError(ncclComm_t)
{
    return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static std::atomic<int> made;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/hpct-emulated-%d-%d", (int) getpid(), made++);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    if (config->blocking != 0)
        broken("NCCL: a communicator that blocks is not emulated");
    ncclComm_t c = *out = new_comm(size, rank);
    memcpy(c->name, id.internal, sizeof c->name);
    meet_as(c);
    return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t *out, ncclConfig_t *)
{
    check_idle(parent, "a split");
    if (parent->busy)
        broken("NCCL: a split while an operation is outstanding");
    int number = parent->splits++, device = current_device();
    parent->under_way = 1000000;
    *out = nullptr;
    std::thread([=] {
        team *t = parent->shared;
        t->colors[parent->rank] = color;
        t->keys[parent->rank] = key;
        bool met = meet(parent);
        int size = 0, rank = 0;
        for (int i = 0; met && i < parent->size; i++) {
            if (t->colors[i] != color)
                continue;
            size++;
            rank += t->keys[i] < key || (t->keys[i] == key && i < parent->rank);
        }
        met = met && meet(parent);
        if (met && color != NCCL_SPLIT_NOCOLOR) {
            ncclComm_t c = new_comm(size, rank);
            c->device = device;
            snprintf(c->name, sizeof c->name, "%.90s-%d-%d", parent->name, number, color);
            open_team(c);
            c->under_way = 2;
            *out = c;
        }
        parent->under_way = 2;
    }).detach();
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    turn t;
    if (c->aborted)
        broken("NCCL is asked of a communicator that was aborted");
    if (c->under_way == 1) {
        for (const auto &call : c->queued)
            enqueue(call.stream, call.what);
        c->queued.clear();
    }
    *state = c->under_way > 0 ? ncclInProgress : ncclSuccess;
    if (c->under_way > 0 && c->under_way < 1000000)
        c->under_way--;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    groups++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (--groups > 0)
        return ncclSuccess;
    turn t;
    std::vector<grouped> all;
    std::vector<grouped_task> tasks;
    all.swap(pending);
    tasks.swap(pending_tasks);
    if (!all.empty() || !tasks.empty())
        check_turn(all.empty() ? tasks[0].comm : all[0].comm);
    for (const grouped &g : all) {
        check_idle(g.comm, "a send or receive");
        if (refuses("nccl"))
            return ncclInternalError;
        later(g.comm, g.stream, beside(g.comm, [g] { make_transfers(g.comm, g.transfers); }));
    }
    for (grouped_task &one : tasks)
        later(one.comm, one.stream, std::move(one.what));
    return all.empty() && tasks.empty() ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclAllReduce(const void *src, void *dst, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return op == ncclSum ? ask({comm, "all-reduce", src, dst, count, type, 0}, stream)
                         : ncclInvalidArgument;
}

ncclResult_t ncclReduce(const void *src, void *dst, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return op == ncclSum ? ask({comm, "reduce", src, dst, count, type, root}, stream)
                         : ncclInvalidArgument;
}

ncclResult_t ncclBroadcast(const void *src, void *dst, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    return ask({comm, "broadcast", src, dst, count, type, root}, stream);
}

ncclResult_t ncclAllGather(const void *src, void *dst, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return ask({comm, "all-gather", src, dst, count, type, 0}, stream);
}

ncclResult_t ncclSend(const void *src, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add_transfer(comm, stream,
                        {true, (char *) (uintptr_t) src, count * size_of(type), 0, peer, false});
}

ncclResult_t ncclRecv(void *dst, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add_transfer(comm, stream, {false, (char *) dst, count * size_of(type), 0, peer, false});
}

/* It waits for recordings, as destroying does, and aborting. */
ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    if (c->held.use_count() > 1)
        broken("NCCL: a communicator is finalized that a recording has calls of");
    c->under_way = 2;
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    turn t;
    wait_until(nullptr, [c] { return !c->busy; });
    wait_device(c->device);
    if (c->held.use_count() > 1)
        broken("NCCL: a communicator is destroyed that a recording has calls of");
    munmap(c->shared, sizeof(team));
    if (issuing[c->device] == c)
        issuing[c->device] = nullptr;
    delete c;
    return ncclSuccess;
}

/* What is under way ends soon; the communicator is not used again. The call ends when no recording
 * has calls of it any more. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    c->aborted = true;
    while (c->held.use_count() > 1)
        usleep(1000);
    return ncclSuccess;
}

#pragma GCC visibility pop
}
