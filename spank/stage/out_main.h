/* spank/stage/out_main.h - hpc-train-stage --out …; returns the exit status. */
#ifndef HPCT_SPANK_STAGE_OUT_MAIN_H
#define HPCT_SPANK_STAGE_OUT_MAIN_H

int hpct_stage_out_main(int argc, char **argv);

#endif
