/* --summary-json. */
#include "agent/summary.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *servers_to_json(const hpct_ps_summary *s)
{
    return json_pack(
        "{s:i s:b s:i s:o s:i s:i s:I s:I s:I s:o s:I s:I}", "servers", s->servers, "synchronous",
        (int) s->synchronous, "backup_workers", s->backup_workers, "max_staleness",
        s->max_staleness < 0 ? json_null() : json_integer(s->max_staleness), "workers_joined",
        s->workers_joined, "workers_lost", s->workers_lost, "gradients", (json_int_t) s->gradients,
        "late", (json_int_t) s->late, "given_again", (json_int_t) s->given_again, "staleness_mean",
        number(s->staleness_mean), "staleness_largest", (json_int_t) s->staleness_max, "held",
        (json_int_t) s->held);
}

static json_t *to_json(const hpct_summary *s)
{
    json_t *epoch_seconds = json_array();
    for (int i = 0; i < s->epochs; i++)
        json_array_append_new(epoch_seconds, number(s->epoch_seconds[i]));
    return json_pack(
        "{s:s s:s s:s s:s s:i s:i s:i s:i s:i s:I s:I s:I s:o s:o s:o s:o s:o s:o s:o s:o s:o s:o "
        "s:o s:I s:o s:s s:o s:o s:o}",
        "model", s->model, "strategy", s->strategy, "device", s->device, "precision",
        s->precision == HPCT_BF16 ? "mixed_bfloat16" : "float32", "workers", s->workers, "replicas",
        s->replicas, "threads", s->threads, "global_batch", s->global_batch, "epochs", s->epochs,
        "steps", (json_int_t) s->steps, "parameters", (json_int_t) s->parameters, "seed",
        (json_int_t) s->seed, "start_seconds", number(s->start_seconds), "train_seconds",
        number(s->train_seconds), "epoch_seconds", epoch_seconds, "input_wait_seconds",
        number(s->input_wait_seconds), "step_ms", number(s->step_ms), "images_per_second",
        number(s->images_per_second), "loss", number(s->train.loss), "accuracy",
        number(s->train.accuracy), "val_loss", number(s->validation.loss), "val_accuracy",
        number(s->validation.accuracy), "peak_rss_mb", number(s->peak_rss_mb),
        "bytes_sent_per_step", (json_int_t) s->bytes_sent_per_step, "stopped_by",
        s->signal == 0 ? json_null() : json_string(s->signal == SIGINT ? "SIGINT" : "SIGTERM"),
        "optimizer", s->optimizer, "learning_rate", number(s->learning_rate),
        "top_k_categorical_accuracy", number(s->top_k > 0 ? s->train.top_k_accuracy : NAN),
        "val_top_k_categorical_accuracy",
        number(s->top_k > 0 ? s->validation.top_k_accuracy : NAN));
}

static bool write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        length -= (size_t) written;
    }
    return true;
}

hpct_status hpct_summary_write(const hpct_summary *summary, const char *path)
{
    hpct_status status = HPCT_OK;
    char *text = NULL, *line = NULL, *temporary = NULL;
    int fd = -1;
    json_t *object = to_json(summary);
    if (summary->parameter_server != NULL)
        json_object_set_new(object, "parameter_server", servers_to_json(summary->parameter_server));
    if (object != NULL)
        text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (text == NULL || asprintf(&line, "%s\n", text) < 0 ||
        asprintf(&temporary, "%s.tmp%d", path, (int) getpid()) < 0) {
        status = hpct_fail_memory(0);
        goto end;
    }
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        status = hpct_fail(HPCT_ERR_IO, "%s cannot be written: %s", path, strerror(errno));
        goto end;
    }
    bool written = write_all(fd, line, strlen(line)) && fsync(fd) == 0;
    if (close(fd) != 0 || !written || rename(temporary, path) != 0) {
        status = hpct_fail(HPCT_ERR_IO, "%s cannot be written: %s", path, strerror(errno));
        unlink(temporary);
    }
end:
    free(text);
    free(line);
    free(temporary);
    return status;
}
