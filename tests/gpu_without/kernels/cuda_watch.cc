/* The rules of cuda_watch.h. Time is counted in phases, of which each block has one between two
 * barriers. Each byte has the phase and thread of its last write, of its last read, and of one read
 * of another block. */
#include "tests/gpu_without/kernels/cuda_watch.h"

#include <algorithm>
#include <dlfcn.h>
#include <iterator>
#include <memory>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unordered_map>
#include <vector>

namespace
{

constexpr unsigned LANES = 32, MOST_THREADS = 1024;
constexpr size_t PAGE = 4096, RECENT = 64;     /* pages that are found at once */
constexpr size_t FEW_BYTES = (size_t) 1 << 18; /* looked at, of a launch */

struct access {
    uint64_t phase : 40, thread : 10, several : 1, time : 13; /* time: of the warp, in its phase */
};

struct cell {
    access write, read, other_read; /* phase 0: none */
};

struct page {
    cell of[PAGE];
};

/* A block has said that what it wrote before is there. */
struct publication {
    uint64_t begin, phase; /* of the block; when */
    unsigned thread;
    const void *by;
};

struct launch {
    const char *stacks;
    size_t stack_bytes, bytes_left; /* to look at */
    size_t traffic;
    uint64_t begin; /* the first phase of it */
    std::vector<publication> publications;
};

/* Of the launch. Its pages take cells that earlier ones had: what is in them is of earlier phases,
 * which is nothing. */
std::unordered_map<uintptr_t, page *> pages;
std::vector<std::unique_ptr<page>> cells;
struct place {
    uintptr_t number;
    page *is;
} recent[RECENT];

/* The block that runs. */
struct block {
    uint64_t begin; /* its first phase */
    unsigned index[3], thread;
    unsigned time[MOST_THREADS / LANES];
    bool fenced[MOST_THREADS]; /* and has not written since */
    /* the atomic by which it knows of others */
    const void *seen_by;
    uint64_t seen_phase;
    unsigned seen_thread, seen_time;
    bool seen; /* behind a fence */
};

thread_local launch *now;
block here;
uint64_t phase;

extern "C" char __bss_start[] __attribute__((visibility("hidden")));
extern "C" char _end[] __attribute__((visibility("hidden")));

/* Kernels' __shared__ variables are static ones here. */
bool is_shared(const char *at)
{
    return at >= __bss_start && at < _end;
}

void end_here(const char *what)
{
    fprintf(stderr, "a race in a kernel: %s\n", what);
    abort();
}

void tell(const char *at, size_t size, bool is_write, const access &before, bool wrote,
          const void *caller)
{
    char text[512];
    Dl_info object = {};
    dladdr(caller, &object);
    snprintf(text, sizeof text,
             "thread %u of block (%u, %u, %u) %s %zu bytes (%s), which %sthread %u of %s block %s: "
             "nothing orders them; addr2line -i -e %s %#zx",
             here.thread, here.index[0], here.index[1], here.index[2],
             is_write ? "writes" : "reads", size, is_shared(at) ? "shared" : "global",
             before.several ? "several with " : "", (unsigned) before.thread,
             before.phase >= here.begin ? "the same" : "another", wrote ? "wrote" : "read",
             object.dli_fname != nullptr ? object.dli_fname : "?",
             (size_t) ((const char *) caller - (const char *) object.dli_fbase));
    hpct_race_found(text);
}

/* What another block did is known to this thread. */
bool is_published(const access &a)
{
    auto behind =
        std::upper_bound(now->publications.begin(), now->publications.end(), (uint64_t) a.phase,
                         [](uint64_t phase, const publication &p) { return phase < p.begin; });
    if (behind == now->publications.begin() || !here.seen)
        return false;
    const publication &p = *std::prev(behind);
    bool told = a.phase < p.phase || (a.phase == p.phase && a.thread == p.thread);
    bool knows = here.thread == here.seen_thread || phase > here.seen_phase ||
                 (here.thread / LANES == here.seen_thread / LANES &&
                  here.time[here.thread / LANES] > here.seen_time);
    return told && knows && p.by == here.seen_by;
}

/* Whether `a` is before what the thread does now. */
bool is_ordered(const access &a, bool shared)
{
    if (a.phase < now->begin)
        return true; /* of an earlier launch, or nothing */
    if (a.phase < here.begin)
        return shared || is_published(a);
    if (a.phase < phase || (a.thread == here.thread && !a.several))
        return true;
    return !a.several && a.thread / LANES == here.thread / LANES &&
           a.time < here.time[here.thread / LANES];
}

page *find(uintptr_t number)
{
    page *&found = pages[number];
    if (found == nullptr && pages.size() > cells.size())
        cells.push_back(std::make_unique<page>());
    if (found == nullptr)
        found = cells[pages.size() - 1].get();
    return found;
}

cell &cell_of(const char *at)
{
    uintptr_t number = (uintptr_t) at / PAGE;
    place &p = recent[number % RECENT];
    if (p.is == nullptr || p.number != number)
        p = {number, find(number)};
    return p.is->of[(uintptr_t) at % PAGE];
}

access mine()
{
    return {phase, here.thread, 0, here.time[here.thread / LANES]};
}

void note_read(cell &c)
{
    access before = c.read;
    c.read = mine();
    if (before.phase == phase)
        c.read.several = before.several || before.thread != here.thread;
    else if (before.phase >= now->begin && before.phase < here.begin)
        c.other_read = before;
}

/* What of a byte nothing orders; NULL: all is ordered. */
const access *find_unordered(const cell &c, bool shared, bool is_write)
{
    return !is_ordered(c.write, shared)        ? &c.write
           : !is_write                         ? nullptr
           : !is_ordered(c.read, shared)       ? &c.read
           : !is_ordered(c.other_read, shared) ? &c.other_read
                                               : nullptr;
}

void note(cell &c, bool shared, bool is_write)
{
    bool known = c.write.phase >= now->begin;
    if (!shared && !known && (is_write || c.read.phase < now->begin))
        now->traffic++;
    if (is_write)
        c.write = mine();
    else
        note_read(c);
}

void reach(const void *pointer, size_t size, bool is_write, const void *caller, bool atomic = false)
{
    const char *at = (const char *) pointer;
    launch *const l = now;
    if (l == nullptr || size > l->bytes_left || (size_t) (at - l->stacks) < l->stack_bytes)
        return;
    const bool shared = is_shared(at);
    cell before, after; /* mostly the same of all bytes */
    size_t counted = 0;
    l->bytes_left -= size;
    for (size_t i = 0; i < size; i++) {
        cell &c = cell_of(at + i);
        if (i > 0 && memcmp(&c, &before, sizeof c) == 0) {
            c = after;
            l->traffic += counted;
            continue;
        }
        before = c;
        const access *unordered = atomic ? nullptr : find_unordered(before, shared, is_write);
        if (unordered != nullptr)
            tell(at, size, is_write, *unordered, unordered == &before.write, caller);
        counted = l->traffic;
        note(c, shared, is_write);
        counted = l->traffic - counted;
        after = c;
        if (unordered != nullptr)
            break;
    }
    if (is_write)
        here.fenced[here.thread] = false;
}

} // namespace

void (*hpct_race_found)(const char *what) = end_here;

void hpct_watch_begin(const char *stacks, size_t bytes, bool watched)
{
    pages.clear();
    std::fill(std::begin(recent), std::end(recent), place{});
    static const bool all = getenv("HPC_TRAIN_LONG") != nullptr;
    now = new launch{stacks, bytes, all ? SIZE_MAX : watched ? FEW_BYTES : 0, 0, phase + 1, {}};
}

size_t hpct_watch_end()
{
    size_t traffic = now->traffic;
    delete now;
    now = nullptr;
    return traffic;
}

void hpct_watch_block(unsigned x, unsigned y, unsigned z)
{
    here = {};
    here.begin = ++phase;
    here.index[0] = x;
    here.index[1] = y;
    here.index[2] = z;
}

void hpct_watch_thread(unsigned thread)
{
    here.thread = thread;
}

void hpct_watch_barrier()
{
    phase++;
    std::fill(std::begin(here.time), std::end(here.time), 0);
}

void hpct_watch_warp(unsigned warp)
{
    here.time[warp]++;
}

void hpct_watch_fence()
{
    here.fenced[here.thread] = true;
    if (here.seen_by != nullptr && here.seen_thread == here.thread && !here.seen) {
        here.seen = true;
        here.seen_time = here.time[here.thread / LANES];
    }
}

void hpct_watch_atomic(const void *at)
{
    if (now == nullptr)
        return;
    if (here.fenced[here.thread])
        now->publications.push_back({here.begin, phase, here.thread, at});
    here.seen_by = at;
    here.seen_phase = phase;
    here.seen_thread = here.thread;
    here.seen = false;
    reach(at, sizeof(unsigned), true, __builtin_return_address(0), true);
}

/* ---- what the compiler calls ---- */

#define CALLER __builtin_return_address(0)
#define EACH_SIZE(X) X(1) X(2) X(4) X(8) X(16)
#define OF_SIZE(n)                                                                                 \
    void __tsan_read##n(void *at)                                                                  \
    {                                                                                              \
        reach(at, n, false, CALLER);                                                               \
    }                                                                                              \
    void __tsan_write##n(void *at)                                                                 \
    {                                                                                              \
        reach(at, n, true, CALLER);                                                                \
    }                                                                                              \
    void __tsan_unaligned_read##n(void *at)                                                        \
    {                                                                                              \
        reach(at, n, false, CALLER);                                                               \
    }                                                                                              \
    void __tsan_unaligned_write##n(void *at)                                                       \
    {                                                                                              \
        reach(at, n, true, CALLER);                                                                \
    }

extern "C" {

EACH_SIZE(OF_SIZE)

void __tsan_read_range(void *at, size_t size)
{
    reach(at, size, false, CALLER);
}

void __tsan_write_range(void *at, size_t size)
{
    reach(at, size, true, CALLER);
}

void __tsan_init()
{
}

void __tsan_func_entry(void *)
{
}

void __tsan_func_exit()
{
}

} /* extern "C" */
