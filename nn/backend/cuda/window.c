/* Padding of windows. */
#include "nn/backend/cuda/window.h"

int hpct_cuda_window_pad_after(int in, int out, int reach, int stride, int before)
{
    int least = (out - 1) * stride + reach - in - before, most = least + stride - 1;
    if (most < 0)
        return -1;
    return before >= least && before <= most ? before : least > 0 ? least : 0;
}

static int padded_size(int in, int out, int reach, int stride, int before)
{
    int after = hpct_cuda_window_pad_after(in, out, reach, stride, before);
    return in + before + (after > 0 ? after : 0);
}

hpct_graph_window hpct_cuda_window_with_padding(const hpct_graph_window *w)
{
    hpct_graph_window padded = *w;
    padded.in_h =
        padded_size(w->in_h, w->out_h, hpct_graph_window_reach(w->kernel_h, w->dilation_h),
                    w->stride_h, w->pad_top);
    padded.in_w =
        padded_size(w->in_w, w->out_w, hpct_graph_window_reach(w->kernel_w, w->dilation_w),
                    w->stride_w, w->pad_left);
    padded.pad_top = padded.pad_left = 0;
    return padded;
}

hpct_cuda_direct hpct_cuda_window_direct(const hpct_graph_window *w, int n)
{
    return (hpct_cuda_direct){.n = n,
                              .in_h = w->in_h,
                              .in_w = w->in_w,
                              .in_c = w->in_c,
                              .out_h = w->out_h,
                              .out_w = w->out_w,
                              .out_c = w->out_c,
                              .kernel_h = w->kernel_h,
                              .kernel_w = w->kernel_w,
                              .stride_h = w->stride_h,
                              .stride_w = w->stride_w,
                              .dilation_h = w->dilation_h,
                              .dilation_w = w->dilation_w,
                              .pad_top = w->pad_top,
                              .pad_left = w->pad_left,
                              .groups = w->groups,
                              .first_cell = w->first_cell,
                              .cells = hpct_graph_window_cells(w)};
}
