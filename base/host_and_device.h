/* base/host_and_device.h - inline functions that C calls, and CUDA C++ on the host and on GPUs. */
#ifndef HPCT_BASE_HOST_AND_DEVICE_H
#define HPCT_BASE_HOST_AND_DEVICE_H

#ifdef __CUDACC__
#define HPCT_HOST_AND_DEVICE static inline __host__ __device__
#else
#define HPCT_HOST_AND_DEVICE static inline
#endif

#endif
