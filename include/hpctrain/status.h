/* hpctrain/status.h - error codes and messages.
 *
 * Functions that can fail return an hpct_status. Values are the exit codes of the `hpc-train`
 * command, so that a program can return them from main. */
#ifndef HPCTRAIN_STATUS_H
#define HPCTRAIN_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define HPCT_API __attribute__((visibility("default")))

typedef enum hpct_status {
    HPCT_OK = 0,
    HPCT_ERR_USAGE = 64,    /* wrong argument or option */
    HPCT_ERR_DATA = 65,     /* invalid content of a data set or file */
    HPCT_ERR_NO_INPUT = 66, /* a file or folder is missing or unreadable */
    HPCT_ERR_PEER = 69,     /* another rank was lost */
    HPCT_ERR_INTERNAL = 70, /* out of memory, or a bug here or in a library */
    HPCT_ERR_IO = 74,       /* read or write error */
    HPCT_ERR_STOPPED = 75,  /* stopped early by a signal, weights saved */
    HPCT_ERR_CONFIG = 78,   /* wrong cluster description or installation */
} hpct_status;

/* Message of the calling thread's last error: file, rank or option, what is wrong, what to do. One
 * line without a newline; "" before any error. Owned by the library, valid until the thread's next
 * error. */
HPCT_API const char *hpct_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
