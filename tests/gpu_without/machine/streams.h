/* tests/gpu_without/machine/streams.h - streams, events and graphs: what CUDA's handles point to.
 */
#ifndef HPCT_TESTS_GPU_WITHOUT_MACHINE_STREAMS_H
#define HPCT_TESTS_GPU_WITHOUT_MACHINE_STREAMS_H

#include "tests/gpu_without/machine/machine.h"

#include <deque>
#include <memory>
#include <set>
#include <vector>

struct CUgraph_st {
    struct node {
        emulated::task what;
        std::set<int> after; /* nodes */
    };
    std::vector<node> nodes;
    cudaStream_t origin;
    bool spoilt;
};

struct CUgraphExec_st {
    CUgraph_st graph;
    size_t launches;
};

struct CUstream_st {
    struct item {
        emulated::task what;
        emulated::work begun;   /* empty: not yet */
        cudaStream_t waits_for; /* NULL: for nobody */
        bool by_host;           /* a function of the host, which others do not wait for */
    };
    int device;
    std::deque<item> items;
    bool busy;            /* a function of the host runs */
    bool held;            /* one was the last that came */
    bool timed;           /* of what comes now only the time is wanted */
    CUgraph_st *into;     /* captured */
    std::set<int> behind; /* nodes of it */
};

struct CUevent_st {
    uint64_t recorded;                                              /* how often */
    std::shared_ptr<uint64_t> done = std::make_shared<uint64_t>(0); /* who waits may outlive it */
    int device;
    size_t library_calls; /* before it was recorded */
    bool tells_time;
    cudaStream_t where;
    bool captured;
    CUgraph_st *graph;    /* of which it was recorded while captured, */
    std::set<int> behind; /* behind these */
};

namespace emulated
{

cudaError_t record(cudaEvent_t event, cudaStream_t stream);
void forget(cudaEvent_t event); /* before it is destroyed */
cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event);
cudaError_t begin_capture(cudaStream_t stream);
cudaError_t end_capture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t launch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t enqueue_host(cudaStream_t stream, std::function<void()> body);
void add_stream(cudaStream_t stream);
void drop_stream(cudaStream_t stream);
void wait_stream(cudaStream_t stream);
void wait_device(int device);
/* Nodes of the longest way along its edges. */
size_t longest_way(const CUgraph_st &graph);
/* Some steps of what the event waits for. */
void go_on(cudaEvent_t event);

} // namespace emulated

#endif
