/* Devices' memory: rooms of addresses that are closed but while a device computes. */
#include "tests/gpu_without/machine/machine.h"

#include <map>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace emulated
{

namespace
{

constexpr size_t ROOM = (size_t) 8 << 30, PAGE = 4096, POISONED = (size_t) 1 << 19;
constexpr int MOST_DEVICES = 8, POISON = 0xff, BEHIND = 0xff; /* no numbers */

struct device {
    char *room;
    std::map<size_t, size_t> &live =
        *new std::map<size_t, size_t>; /* where from, bytes asked for */
    size_t used, end;                  /* bytes given out; behind the last that ever was */
    bool is_open;
    int kept;
} devices[MOST_DEVICES];

std::map<const char *, size_t> &pinned = *new std::map<const char *, size_t>;

size_t pages_of(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE + PAGE; /* one behind it */
}

device &find(int number)
{
    device &d = devices[number];
    if (d.room == nullptr) {
        void *room =
            mmap(nullptr, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED)
            broken("there are not as many addresses");
        d.room = (char *) room;
    }
    return d;
}

void protect(device &d, int how)
{
    if (d.end > 0 && mprotect(d.room, d.end, how) != 0)
        broken("mprotect");
}

/* MiB that others have. */
size_t taken(const char *variable)
{
    const char *mib = getenv(variable);
    return mib != nullptr ? (size_t) atoi(mib) << 20 : 0;
}

/* Of what is large the ends alone: pages that nobody touches cost nothing. */
void poison(char *at, size_t bytes)
{
    size_t part = bytes < POISONED ? bytes : POISONED;
    memset(at, POISON, part);
    memset(at + bytes - part, POISON, part);
}

void check_behind(const device &d, size_t at, size_t bytes)
{
    for (size_t i = at + bytes; i < at + pages_of(bytes); i++) {
        if ((unsigned char) d.room[i] != BEHIND)
            broken("something wrote %zu bytes behind the end of %zu bytes", i - at - bytes, bytes);
    }
}

} // namespace

void broken(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("the emulated GPU: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

int count_devices()
{
    const char *count = getenv("HPC_TRAIN_TEST_DEVICES");
    int devices = count != nullptr ? atoi(count) : 1;
    return devices < MOST_DEVICES ? devices : MOST_DEVICES;
}

void open(int number)
{
    device &d = find(number);
    if (!d.is_open)
        protect(d, PROT_READ | PROT_WRITE);
    d.is_open = true;
}

void keep_open(int number, bool keep)
{
    open(number);
    find(number).kept += keep ? 1 : -1;
}

/* At the end of a turn; changing the protection of all pages takes long, so that after a while some
 * turns leave them open: the host does what it does in each step. */
void close_all()
{
    constexpr unsigned ALWAYS = 1000, SOMETIMES = 8;
    static const bool each = getenv("HPC_TRAIN_LONG") != nullptr;
    static unsigned turns;
    if (!each && ++turns > ALWAYS && turns % SOMETIMES != 0)
        return;
    for (device &d : devices) {
        if (d.is_open && d.kept == 0) {
            protect(d, PROT_NONE);
            d.is_open = false;
        }
    }
}

void memory_left(int number, size_t *left, size_t *all)
{
    const char *full = getenv("HPC_TRAIN_TEST_FULL");
    size_t used = find(number).used + taken("HPC_TRAIN_TEST_USED");
    *all = ROOM;
    *left = used < ROOM && (full == nullptr || atoi(full) != number) ? ROOM - used : 0;
}

void *allocate(int number, size_t bytes)
{
    device &d = find(number);
    size_t at = 0;
    if (bytes > ROOM ||
        d.used + taken("HPC_TRAIN_TEST_USED") + taken("HPC_TRAIN_TEST_TAKEN") > ROOM - bytes)
        return nullptr;
    for (const auto &piece : d.live) { /* the first gap that is large enough */
        if (piece.first - at >= pages_of(bytes))
            break;
        at = piece.first + pages_of(piece.second);
    }
    if (at + pages_of(bytes) > ROOM)
        return nullptr;
    d.live[at] = bytes;
    d.used += bytes;
    if (at + pages_of(bytes) > d.end) {
        d.end = at + pages_of(bytes);
        d.is_open = false;
    }
    open(number);
    poison(d.room + at, bytes);
    memset(d.room + at + bytes, BEHIND, pages_of(bytes) - bytes);
    return d.room + at;
}

int device_of(const void *memory)
{
    for (int i = 0; i < MOST_DEVICES; i++) {
        if (devices[i].room != nullptr && (const char *) memory >= devices[i].room &&
            (const char *) memory < devices[i].room + ROOM)
            return i;
    }
    return -1;
}

void release(void *memory)
{
    int number = device_of(memory);
    if (number < 0)
        broken("cudaFree of %p, which is not a device's", memory);
    device &d = find(number);
    size_t at = (size_t) ((char *) memory - d.room);
    auto piece = d.live.find(at);
    if (piece == d.live.end())
        broken("cudaFree of what was not given out");
    open(number);
    check_behind(d, at, piece->second);
    madvise(d.room + at, pages_of(piece->second), MADV_DONTNEED);
    d.used -= piece->second;
    d.live.erase(piece);
}

void *allocate_pinned(size_t bytes)
{
    char *memory = (char *) malloc(bytes);
    if (memory == nullptr)
        return nullptr;
    memset(memory, POISON, bytes);
    pinned[memory] = bytes;
    return memory;
}

void release_pinned(void *host)
{
    if (pinned.erase((const char *) host) != 1)
        broken("cudaFreeHost of what was not given out");
    free(host);
}

bool is_pinned(const void *host)
{
    auto behind = pinned.upper_bound((const char *) host);
    if (behind == pinned.begin())
        return false;
    --behind;
    return (const char *) host < behind->first + behind->second;
}

} // namespace emulated
