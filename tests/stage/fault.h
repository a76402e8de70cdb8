/* tests/stage/fault.h - what can go wrong: shared by the driver and what it loads. */
#ifndef HPCT_TESTS_STAGE_FAULT_H
#define HPCT_TESTS_STAGE_FAULT_H

enum fault {
    /* at a write of the copy */
    FAULT_WRITE,       /* a bit is wrong on the disk */
    FAULT_WRITE_SHORT, /* harmless */
    FAULT_WRITE_ERROR,
    FAULT_WRITE_FULL,
    FAULT_CREATE, /* no more files may be made */
    FAULT_BACK,   /* a bit is wrong when the copy is read */
    /* at a read of the source */
    FAULT_READ_SHORT, /* harmless */
    FAULT_READ_END,
    FAULT_READ_ERROR,
    /* at any call */
    FAULT_TRUNCATE, /* to half its size */
    FAULT_GROW,
    FAULT_VANISH,
    FAULT_REWRITE, /* every byte, the size stays */
    FAULT_REPLACE, /* by a link to a file outside */
    FAULT_FILL,    /* the disk of the copy */
    /* of a broadcast, at something that is sent or received */
    FAULT_RECV,       /* a bit is wrong in what comes */
    FAULT_RECV_SHORT, /* harmless */
    FAULT_RECV_END,   /* the other end closes */
    FAULT_SEND_SHORT, /* harmless */
    FAULT_SEND_ERROR,
    FAULT_KILL, /* the node dies at any call */
    /* before it starts: archives */
    FAULT_FLIP, /* a bit */
    FAULT_CUT,  /* the end */
    NUM_FAULTS,
    FAULT_FIRST_CHANGE = FAULT_TRUNCATE,
    FAULT_LAST_CHANGE = FAULT_FILL,
    FAULT_FIRST_NET = FAULT_RECV,
    FAULT_LAST_NET = FAULT_KILL,
};

#define FAULT_GROWTH "more"
#define FAULT_MASK 0x5a

#endif
