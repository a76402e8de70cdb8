/* agent/results/events.h - records of an event file of TensorBoard: an Event message of
 * tensorflow/core/util/event.proto in the framing of a TFRecord file. Independent of files and of
 * training.
 *
 * Record: u64 length, u32 masked CRC-32C of these 8 bytes, data, u32 masked CRC-32C of the data,
 * all little-endian (TensorFlow, "TFRecord and tf.train.Example"). */
#ifndef HPCT_AGENT_RESULTS_EVENTS_H
#define HPCT_AGENT_RESULTS_EVENTS_H

#include "agent/results/histogram.h"
#include "base/protobuf.h"

#include <stdint.h>

/* CRC-32C (Castagnoli; RFC 3720, B.4). */
uint32_t hpct_results_events_crc(const void *data, size_t size);

/* What all records have: seconds since 1970, and the x-axis. */
typedef struct hpct_results_event {
    double time;
    int64_t step;
} hpct_results_event;

/* Each appends a record to *to. The first one of a file is the version. */
void hpct_results_events_version(hpct_protobuf *to, double time);
/* Readers drop what earlier files have from this step on. */
void hpct_results_events_start(hpct_protobuf *to, const hpct_results_event *at);
void hpct_results_events_scalar(hpct_protobuf *to, const hpct_results_event *at, const char *tag,
                                double value);
void hpct_results_events_text(hpct_protobuf *to, const hpct_results_event *at, const char *tag,
                              const char *markdown); /* UTF-8 */
void hpct_results_events_histogram(hpct_protobuf *to, const hpct_results_event *at, const char *tag,
                                   const hpct_results_histogram *histogram);

/* A value of the HPARAMS tab: a text, or a number if that is NULL. */
typedef struct hpct_results_hparam {
    const char *name, *text;
    double number;
} hpct_results_hparam;

/* The run's, and at its end that it has succeeded. */
void hpct_results_events_hparams(hpct_protobuf *to, const hpct_results_event *at,
                                 const hpct_results_hparam *hparams, int count);
void hpct_results_events_succeeded(hpct_protobuf *to, const hpct_results_event *at);

#endif
