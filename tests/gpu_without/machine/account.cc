/* What tests ask of the machine by the environment, and what it tells them:
 *
 *   HPC_TRAIN_TEST_ACCOUNT     a file that gets a line at the end of the process: bytes of pinned
 *                              memory that were sent, how often the host waited for a stream,
 *                              what came into streams
 *   HPC_TRAIN_TEST_TRAFFIC     one that gets a line for each launcher, kind of graph and product:
 *                              calls, and bytes read and written, each once a call; of own kernels
 *                              all with HPC_TRAIN_LONG alone
 *   HPC_TRAIN_TEST_RECORDINGS  one that gets a line for each graph that is dropped: its nodes, and
 * how many of them the longest way through it has HPC_TRAIN_TEST_FAILS       the device with this
 * number takes no more than ten graphs HPC_TRAIN_TEST_REFUSES     NAME:N, the N-th call of that
 * name fails; NAME:N+, all from it on; kernel:N, the N-th own kernel does while it runs, and all
 * behind it; stuck:N, the N-th wait of the host for an event has no end HPC_TRAIN_TEST_DEVICES how
 * many there are, else one HPC_TRAIN_TEST_USED        MiB of each that others have
 *   HPC_TRAIN_TEST_TAKEN       MiB that are free no more when they are asked for
 *   HPC_TRAIN_TEST_FULL        the device with this number says that it has nothing left
 *   HPC_TRAIN_TEST_NCCL        there is NCCL
 *   HPC_TRAIN_TEST_NO_RECORDING  no graph can be captured
 *   HPC_TRAIN_TEST_SLOW_LIBRARIES  what they compute takes longer than own kernels
 *   HPC_TRAIN_TEST_MAJOR       the compute capability, else 9
 * HPC_TRAIN_TEST_SCHEDULE, HPC_TRAIN_TEST_ENGINES: machine.h, dnn.cc */
#include "tests/gpu_without/machine/machine.h"

#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace emulated
{

namespace
{

constexpr int WORKS = 10; /* launches of graphs, of the device that fails */

size_t sent, waits, computed, enqueued;

struct traffic {
    size_t calls, bytes;
};

std::map<std::string, traffic> &traffic_by = *new std::map<std::string, traffic>;

FILE *open_for(const char *variable)
{
    const char *path = getenv(variable);
    return path != nullptr ? fopen(path, "a") : nullptr;
}

void tell_account()
{
    FILE *file = open_for("HPC_TRAIN_TEST_ACCOUNT");
    if (file == nullptr)
        return;
    fprintf(file, "%zu bytes sent, %zu waits, %zu enqueued\n", sent, waits, enqueued);
    fclose(file);
}

void tell_traffic()
{
    FILE *file = open_for("HPC_TRAIN_TEST_TRAFFIC");
    for (const auto &one : traffic_by) {
        if (file != nullptr)
            fprintf(file, "%s\t%zu\t%zu\n", one.first.c_str(), one.second.calls, one.second.bytes);
    }
    if (file != nullptr)
        fclose(file);
}

void begin()
{
    static bool began;
    if (!began)
        atexit(tell_account);
    began = true;
}

} // namespace

void count_sent(size_t bytes)
{
    begin();
    sent += bytes;
}

void count_wait()
{
    begin();
    waits++;
}

void count_enqueued()
{
    enqueued++;
}

void count_traffic(const std::string &by, size_t bytes)
{
    static const bool wanted = getenv("HPC_TRAIN_TEST_TRAFFIC") != nullptr;
    if (!wanted)
        return;
    if (traffic_by.empty())
        atexit(tell_traffic);
    traffic_by[by].calls++;
    traffic_by[by].bytes += bytes;
}

void tell_recording(size_t nodes, size_t deep, size_t launches)
{
    FILE *file = open_for("HPC_TRAIN_TEST_RECORDINGS");
    if (file == nullptr)
        return;
    fprintf(file, "%zu calls, %zu after each other, %zu replays\n", nodes, deep, launches);
    fclose(file);
}

bool refuses(const char *call)
{
    static int calls, first;
    static const char *name = getenv("HPC_TRAIN_TEST_REFUSES"), *colon;
    if (name == nullptr)
        return false;
    if (colon == nullptr) {
        colon = strchr(name, ':');
        first = colon != nullptr ? atoi(colon + 1) : 1;
        colon = colon != nullptr ? colon : name + strlen(name);
    }
    if (strlen(call) != (size_t) (colon - name) || strncmp(name, call, strlen(call)) != 0)
        return false;
    calls++;
    return calls == first || (calls > first && strchr(colon, '+') != nullptr);
}

void count_library()
{
    computed++;
}

size_t library_calls()
{
    return computed;
}

bool libraries_are_slow()
{
    static const bool slow = getenv("HPC_TRAIN_TEST_SLOW_LIBRARIES") != nullptr;
    return slow;
}

bool is_broken(int device)
{
    static int launches[8];
    const char *number = getenv("HPC_TRAIN_TEST_FAILS");
    return number != nullptr && atoi(number) == device && ++launches[device] > WORKS;
}

} // namespace emulated
