/* Who runs when. */
#include "tests/gpu_without/machine/streams.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdlib.h>
#include <string.h>
#include <thread>

namespace emulated
{

void close_all();

namespace
{

constexpr auto NAP = std::chrono::microseconds(50);
constexpr auto REST = std::chrono::milliseconds(5);
constexpr auto PATIENCE = std::chrono::seconds(60);
constexpr int STEPS = 32;       /* while somebody looks */
constexpr int MOST_WAITING = 8; /* streams, each for the next */

std::mutex mutex;
/* They outlive the process's last functions: a thread looks at them until it ends. */
std::vector<cudaStream_t> &streams = *new std::vector<cudaStream_t>;
std::set<cudaEvent_t> &events = *new std::set<cudaEvent_t>;
uint64_t turns;
uint32_t state;
bool drawn;   /* moments, by HPC_TRAIN_TEST_SCHEDULE */
bool went_on; /* some work, which has not ended */
thread_local cudaGraph_t capturing;

void start()
{
    const char *seed = getenv("HPC_TRAIN_TEST_SCHEDULE");
    drawn = seed != nullptr;
    state = drawn ? (uint32_t) atoi(seed) * 2654435761u + 1 : 1;
}

/* The first item of a stream, once; true when something has come of it. */
bool go_on(cudaStream_t stream, int depth = 0)
{
    if (stream->busy || stream->items.empty() || depth > MOST_WAITING)
        return false;
    CUstream_st::item &item = stream->items.front();
    if (item.by_host) {
        stream->busy = true;
        close_all();
        mutex.unlock();
        item.what()();
        mutex.lock();
        stream->busy = false;
        stream->items.pop_front();
        return true;
    }
    if (!item.begun)
        item.begun = item.what();
    open(stream->device);
    bool ended = item.begun();
    for (; !ended && went_on; ended = item.begun())
        went_on = false;
    if (ended) {
        stream->items.pop_front();
        return true;
    }
    return item.waits_for != nullptr && go_on(item.waits_for, depth + 1);
}

bool go_on_anywhere()
{
    bool any = false;
    for (size_t i = 0; i < streams.size(); i++)
        any = go_on(streams[i]) || any;
    return any;
}

/* The host may wait for others without a call of ours. */
void rest()
{
    for (uint64_t seen = 0;;) {
        std::this_thread::sleep_for(REST);
        turn t;
        if (turns - 1 != seen) {
            seen = turns;
            continue;
        }
        while (go_on_anywhere() && turns - 1 == seen)
            ;
        seen = turns;
    }
}

/* All that lies before these, and they. */
std::set<int> all_before(const CUgraph_st *graph, const std::set<int> &nodes)
{
    std::set<int> all;
    std::vector<int> open(nodes.begin(), nodes.end());
    while (!open.empty()) {
        int node = open.back();
        open.pop_back();
        if (all.insert(node).second)
            open.insert(open.end(), graph->nodes[(size_t) node].after.begin(),
                        graph->nodes[(size_t) node].after.end());
    }
    return all;
}

/* A graph's nodes, in any order that its edges allow. */
struct run {
    CUgraph_st graph;
    std::vector<work> begun;
    std::set<int> ended;

    bool is_ready(int node) const
    {
        const std::set<int> &after = graph.nodes[(size_t) node].after;
        return ended.count(node) == 0 &&
               std::includes(ended.begin(), ended.end(), after.begin(), after.end());
    }

    bool go_on()
    {
        for (bool any = true; any && ended.size() < graph.nodes.size();) {
            std::vector<int> ready;
            for (int i = 0; i < (int) graph.nodes.size(); i++) {
                if (is_ready(i))
                    ready.push_back(i);
            }
            for (size_t i = ready.size(); i > 1; i--)
                std::swap(ready[i - 1], ready[draw((uint32_t) i)]);
            any = false;
            for (size_t i = 0; i < ready.size() && !any; i++) {
                work &w = begun[(size_t) ready[i]];
                if (!w)
                    w = graph.nodes[(size_t) ready[i]].what();
                any = w();
                if (any)
                    ended.insert(ready[i]);
                any = any || went_on;
                went_on = false;
            }
        }
        return ended.size() == graph.nodes.size();
    }
};

} // namespace

turn::turn()
{
    static std::once_flag flag;
    mutex.lock();
    std::call_once(flag, start);
    turns++;
}

turn::~turn()
{
    close_all();
    mutex.unlock();
}

uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

task once(std::function<void()> body)
{
    return [body] {
        return work([body] {
            body();
            return true;
        });
    };
}

/* All bytes 0xff but for the first ones, which say whose it is. */
static bool is_own(const char *workspace, size_t bytes, uint32_t owner)
{
    const char *rest = workspace + sizeof owner;
    size_t count = bytes - sizeof owner;
    return memcmp(workspace, &owner, sizeof owner) == 0 &&
           (count == 0 || (*rest == (char) 0xff && memcmp(rest, rest + 1, count - 1) == 0));
}

task with_workspace(void *workspace, size_t bytes, std::function<void()> body)
{
    if (bytes < sizeof(uint32_t))
        return once(std::move(body));
    return [workspace, bytes, body] {
        auto owner = std::make_shared<uint32_t>(0);
        return work([workspace, bytes, body, owner] {
            static uint32_t owners;
            if (*owner == 0) {
                *owner = ++owners;
                memset(workspace, 0xff, bytes);
                memcpy(workspace, owner.get(), sizeof *owner);
                went_on = true;
                return false;
            }
            if (!is_own((const char *) workspace, bytes, *owner))
                broken("somebody wrote into the workspace of a library that is computing");
            body();
            memset(workspace, 0xff, bytes);
            return true;
        });
    };
}

void add_stream(cudaStream_t stream)
{
    static bool began;
    streams.push_back(stream);
    if (!began)
        std::thread(rest).detach();
    began = true;
}

void drop_stream(cudaStream_t stream)
{
    wait_stream(stream);
    streams.erase(std::find(streams.begin(), streams.end(), stream));
}

void wait_until(cudaStream_t first, const std::function<bool()> &done)
{
    auto began = std::chrono::steady_clock::now();
    while (!done()) {
        if ((first != nullptr && go_on(first)) || go_on_anywhere()) {
            began = std::chrono::steady_clock::now();
            continue;
        }
        close_all();
        mutex.unlock();
        std::this_thread::sleep_for(NAP);
        mutex.lock();
        if (std::chrono::steady_clock::now() - began > PATIENCE)
            broken("what was waited for did not come");
    }
}

void wait_stream(cudaStream_t stream)
{
    wait_until(stream, [stream] { return stream->items.empty(); });
}

void wait_device(int device)
{
    for (size_t i = 0; i < streams.size(); i++) {
        if (streams[i]->device == device)
            wait_stream(streams[i]);
    }
}

void go_on(cudaEvent_t event)
{
    for (int i = 0; i < STEPS && *event->done < event->recorded; i++) {
        if (!go_on(event->where) && !go_on_anywhere())
            break;
    }
}

static void add(cudaStream_t stream, CUstream_st::item item)
{
    stream->items.push_back(std::move(item));
    while (drawn && draw(3) > 0)
        go_on(streams[draw((uint32_t) streams.size())]);
}

cudaError_t enqueue(cudaStream_t stream, task what)
{
    if (stream->into == nullptr) {
        count_enqueued();
        stream->held = false;
        if (stream->timed)
            return cudaSuccess;
        add(stream, {std::move(what), {}, nullptr, false});
        return cudaSuccess;
    }
    stream->into->nodes.push_back({std::move(what), stream->behind});
    stream->behind = {(int) stream->into->nodes.size() - 1};
    return cudaSuccess;
}

cudaError_t enqueue_host(cudaStream_t stream, std::function<void()> body)
{
    if (stream->into != nullptr)
        return enqueue(stream, once(body));
    add(stream, {once(body), {}, nullptr, true});
    stream->held = true;
    return cudaSuccess;
}

/* What is called between two events that tell the time, the first behind a function of the host
 * that holds the stream, was called before to see that it works, and is only measured now: it takes
 * as long as is drawn (cudaEventElapsedTime), and need not be computed again. */
static bool begins_to_measure(const CUevent_st *event, const CUstream_st *stream)
{
    static const bool computes = getenv("HPC_TRAIN_LONG") != nullptr;
    return event->tells_time && stream->held && !computes;
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream)
{
    events.insert(event);
    event->where = stream;
    event->library_calls = library_calls();
    event->captured = stream->into != nullptr;
    if (event->captured) {
        event->graph = stream->into;
        event->behind = stream->behind;
        return cudaSuccess;
    }
    uint64_t number = ++event->recorded;
    auto done = event->done;
    bool begins = begins_to_measure(event, stream);
    stream->timed = false;
    enqueue(stream, once([done, number] { *done = std::max(*done, number); }));
    stream->timed = begins;
    return cudaSuccess;
}

void forget(cudaEvent_t event)
{
    events.erase(event);
}

cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event)
{
    if (event->captured && event->graph == nullptr)
        return tell(cudaErrorCapturedEvent); /* of a capture that has ended */
    if (event->captured) {
        if (stream->into != nullptr && stream->into != event->graph)
            return tell(cudaErrorStreamCaptureMerge);
        stream->into = event->graph;
        stream->behind.insert(event->behind.begin(), event->behind.end());
        return cudaSuccess;
    }
    if (stream->into != nullptr) {
        stream->into->spoilt = true;
        return tell(cudaErrorStreamCaptureIsolation);
    }
    uint64_t time = event->recorded;
    auto done = event->done;
    if (time > 0)
        add(stream, {[done, time] { return work([done, time] { return *done >= time; }); },
                     {},
                     event->where,
                     false});
    return cudaSuccess;
}

bool is_capturing()
{
    return capturing != nullptr;
}

bool may(const char *)
{
    if (capturing == nullptr)
        return true;
    capturing->spoilt = true;
    tell(cudaErrorStreamCaptureUnsupported);
    return false;
}

cudaError_t begin_capture(cudaStream_t stream)
{
    if (capturing != nullptr || stream->into != nullptr)
        return tell(cudaErrorIllegalState);
    capturing = stream->into = new CUgraph_st{{}, stream, false};
    stream->behind.clear();
    return cudaSuccess;
}

cudaError_t end_capture(cudaStream_t stream, cudaGraph_t *out)
{
    cudaGraph_t graph = stream->into;
    *out = nullptr;
    if (graph == nullptr || graph->origin != stream)
        return tell(cudaErrorIllegalState);
    if (graph != capturing)
        return tell(cudaErrorStreamCaptureWrongThread);
    std::set<int> joined = all_before(graph, stream->behind);
    cudaError_t error = graph->spoilt ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    for (cudaStream_t other : streams) {
        if (other->into != graph)
            continue;
        if (error == cudaSuccess && !std::includes(joined.begin(), joined.end(),
                                                   other->behind.begin(), other->behind.end()))
            error = cudaErrorStreamCaptureUnjoined;
        other->into = nullptr;
        other->behind.clear();
    }
    for (cudaEvent_t event : events) {
        if (event->graph == graph)
            event->graph = nullptr;
    }
    capturing = nullptr;
    if (error == cudaSuccess)
        *out = graph;
    else
        delete graph;
    return error == cudaSuccess ? error : tell(error);
}

size_t longest_way(const CUgraph_st &graph)
{
    std::vector<size_t> ways; /* that end with each; nodes come behind those that they wait for */
    size_t longest = 0;
    for (const auto &node : graph.nodes) {
        size_t before = 0;
        for (int other : node.after)
            before = std::max(before, ways[(size_t) other]);
        ways.push_back(before + 1);
        longest = std::max(longest, before + 1);
    }
    return longest;
}

cudaError_t launch(cudaGraphExec_t graph, cudaStream_t stream)
{
    CUgraph_st copy = graph->graph;
    graph->launches++;
    return enqueue(stream, [copy] {
        auto r = std::make_shared<run>();
        r->graph = copy;
        r->begun.resize(copy.nodes.size());
        return work([r] { return r->go_on(); });
    });
}

} // namespace emulated
