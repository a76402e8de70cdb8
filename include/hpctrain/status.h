/* hpctrain/status.h - how every function of the library says that it failed.
 *
 * A function that can fail returns an hpct_status. Its values are the exit codes of the
 * `hpc-train` command, so a program may simply `return status` from main. */
#ifndef HPCTRAIN_STATUS_H
#define HPCTRAIN_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define HPCT_API __attribute__((visibility("default")))

typedef enum hpct_status {
    HPCT_OK = 0,
    HPCT_ERR_USAGE = 64,    /* an argument or option is wrong */
    HPCT_ERR_DATA = 65,     /* a data set or file has content that cannot be right */
    HPCT_ERR_NO_INPUT = 66, /* a file or folder is missing or may not be read */
    HPCT_ERR_PEER = 69,     /* another rank was lost */
    HPCT_ERR_INTERNAL = 70, /* out of memory, or a fault of ours or of a library below us */
    HPCT_ERR_IO = 74,       /* reading or writing failed */
    HPCT_ERR_STOPPED = 75,  /* stopped early with a checkpoint: requeue */
    HPCT_ERR_CONFIG = 78,   /* the cluster's description or the installation is wrong */
} hpct_status;

/* The message of the calling thread's last failure: what went wrong, with which file, rank or
 * option, and what to do. One line without a newline; "" before any failure. Owned by the library
 * and valid until the thread's next failing call. */
HPCT_API const char *hpct_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
