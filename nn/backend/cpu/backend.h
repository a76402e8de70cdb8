/* nn/backend/cpu/backend.h - the cpu backend, its threads and their rates. */
#ifndef HPCT_NN_BACKEND_CPU_BACKEND_H
#define HPCT_NN_BACKEND_CPU_BACKEND_H

#include "nn/backend/backend.h"

extern const hpct_backend hpct_cpu_backend;
const char *hpct_cpu_library(void); /* "oneDNN 3.7.2" */

/* Number of threads of the cpu backend when called from this thread; at least 1. By default OpenMP
 * decides (OMP_NUM_THREADS, else the processors that this process may run on). */
void hpct_cpu_set_threads(int threads);
int hpct_cpu_threads(void);

/* Sustained rates of these threads in fp32: products of two matrices, and a = b + 3 c on arrays of
 * `bytes` in all (bytes read plus written). Each run repeats the one for `seconds`, the other for
 * half of that, and both at least once. */
typedef struct hpct_cpu_meter hpct_cpu_meter;
hpct_status hpct_cpu_meter_open(hpct_cpu_meter **out, size_t bytes);
hpct_status hpct_cpu_meter_run(hpct_cpu_meter *meter, double seconds, hpct_backend_rates *rates);
void hpct_cpu_meter_close(hpct_cpu_meter *meter); /* NULL is allowed */

#endif
