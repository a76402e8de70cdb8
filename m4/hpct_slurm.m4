# Slurm: the headers that the plugin is compiled with, what differs between releases, and the folders of its plugins and
# its configuration. The C code that uses the results is spank/slurm_release.c.

# HPCT_SLURM_DECLARES(NAME, TYPE, DECLARATION): defines NAME, and sets $NAME to yes, where the headers declare the function
# exactly so; a declaration of another type does not compile beside theirs.
AC_DEFUN([HPCT_SLURM_DECLARES], [
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <slurm/slurm.h>
#include <slurm/spank.h>
$3;]], [])], [$1=yes
    AC_DEFINE([$1], [1], [Slurm has: $2])], [$1=no])
])

# The plugin is built for one Slurm major.minor: its headers decide which.
AC_DEFUN([HPCT_NEED_SLURM], [
  AC_MSG_CHECKING([for slurm/spank.h])
  # as a system's: they are not as free of warnings as our own code
  AS_CASE([$with_slurm], [yes|no], [], [hpct_slurm_cppflags="-isystem $with_slurm/include"])
  hpct_save_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $hpct_slurm_cppflags"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <slurm/slurm.h>
#include <slurm/spank.h>
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(22,5,0)
#error too old
#endif]], [])], [hpct_slurm=yes], [hpct_slurm=no])
  AS_IF([test $hpct_slurm = yes], [
    AC_COMPUTE_INT([hpct_slurm_major], [SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER)],
      [[#include <slurm/slurm.h>]], [hpct_slurm_major=0])
    AC_COMPUTE_INT([hpct_slurm_minor], [SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER)],
      [[#include <slurm/slurm.h>]], [hpct_slurm_minor=0])
    HPCT_FOUND([Slurm], [$(printf '%d.%02d' $hpct_slurm_major $hpct_slurm_minor)])])
  AC_MSG_RESULT([$hpct_slurm])
  AS_IF([test $hpct_slurm = no],
    [HPCT_MISSING([Slurm 22.05 or later (slurm/spank.h)], [libslurm-dev], [--with-slurm=DIR])],
    [HPCT_SLURM_RELEASE])
  CPPFLAGS=$hpct_save_CPPFLAGS
  AC_SUBST([SLURM_CPPFLAGS], [$hpct_slurm_cppflags])
])

# What differs from 22.05 to 26.05. A function that has none of the known forms is an error here, by name, rather than one
# of the compiler's.
AC_DEFUN([HPCT_SLURM_RELEASE], [
  AC_MSG_CHECKING([for the form of slurm_kill_job_step])
  HPCT_SLURM_DECLARES([SLURM_KILL_NUMBERS], [kill_job_step(job, step, signal), to 23.02],
    [extern int slurm_kill_job_step(uint32_t, uint32_t, uint16_t)])
  HPCT_SLURM_DECLARES([SLURM_KILL_NUMBERS_FLAGS], [kill_job_step(job, step, signal, flags), 23.11 to 25.05],
    [extern int slurm_kill_job_step(uint32_t, uint32_t, uint16_t, uint16_t)])
  HPCT_SLURM_DECLARES([SLURM_KILL_STEP_ID], [kill_job_step(step_id *, signal, flags), 25.11 and later],
    [extern int slurm_kill_job_step(slurm_step_id_t *, uint16_t, uint16_t)])
  AS_CASE([$SLURM_KILL_NUMBERS$SLURM_KILL_NUMBERS_FLAGS$SLURM_KILL_STEP_ID],
    [yesnono], [AC_MSG_RESULT([job, step, signal])],
    [noyesno], [AC_MSG_RESULT([job, step, signal, flags])],
    [nonoyes], [AC_MSG_RESULT([step id, signal, flags])],
    [AC_MSG_ERROR([slurm/slurm.h declares slurm_kill_job_step in a form that hpc-train does not know: it knows Slurm 22.05 to 26.05])])

  AC_MSG_CHECKING([for the form of slurm_signal_job_step])
  HPCT_SLURM_DECLARES([SLURM_SIGNAL_NUMBERS], [signal_job_step(job, step, signal), to 25.05],
    [extern int slurm_signal_job_step(uint32_t, uint32_t, uint32_t)])
  HPCT_SLURM_DECLARES([SLURM_SIGNAL_STEP_ID], [signal_job_step(step_id *, signal), 25.11 and later],
    [extern int slurm_signal_job_step(slurm_step_id_t *, uint32_t)])
  AS_CASE([$SLURM_SIGNAL_NUMBERS$SLURM_SIGNAL_STEP_ID],
    [yesno], [AC_MSG_RESULT([job, step, signal])],
    [noyes], [AC_MSG_RESULT([step id, signal])],
    [AC_MSG_ERROR([slurm/slurm.h declares slurm_signal_job_step in a form that hpc-train does not know: it knows Slurm 22.05 to 26.05])])

  dnl Where it has another form, Slurm itself tells a job when it ends (SLURM_JOB_END_TIME).
  HPCT_SLURM_DECLARES([SLURM_END_TIME_NUMBER], [get_end_time(job, time *)],
    [extern int slurm_get_end_time(uint32_t, time_t *)])

  HPCT_SLURM_DECLARES([SLURM_REQUEUE_NUMBER], [requeue(job, flags)],
    [extern int slurm_requeue(uint32_t, uint32_t)])
  HPCT_SLURM_DECLARES([SLURM_LOAD_JOB_NUMBER], [load_job(jobs, job, flags)],
    [extern int slurm_load_job(job_info_msg_t **, uint32_t, uint16_t)])

  AC_MSG_CHECKING([for the form of slurm_complete_job])
  HPCT_SLURM_DECLARES([SLURM_COMPLETE_NUMBERS], [complete_job(job, status), to 25.05],
    [extern int slurm_complete_job(uint32_t, uint32_t)])
  HPCT_SLURM_DECLARES([SLURM_COMPLETE_STEP_ID], [complete_job(step_id *, status), 25.11 and later],
    [extern int slurm_complete_job(slurm_step_id_t *, uint32_t)])
  AS_CASE([$SLURM_COMPLETE_NUMBERS$SLURM_COMPLETE_STEP_ID],
    [yesno], [AC_MSG_RESULT([job, status])],
    [noyes], [AC_MSG_RESULT([step id, status])],
    [AC_MSG_ERROR([slurm/slurm.h declares slurm_complete_job in a form that hpc-train does not know: it knows Slurm 22.05 to 26.05])])

  AC_CHECK_MEMBERS([slurm_conf_t.prolog_epilog_timeout, slurm_conf_t.epilog_timeout], [], [],
    [[#include <slurm/slurm.h>]])
  AS_IF([test "$ac_cv_member_slurm_conf_t_prolog_epilog_timeout$ac_cv_member_slurm_conf_t_epilog_timeout" = nono],
    [AC_MSG_ERROR([slurm/slurm.h has no timeout of an epilog under a name that hpc-train knows: it knows Slurm 22.05 to 26.05])])
  AC_CHECK_DECLS([slurm_spank_init_failure_mode], [], [], [[#include <slurm/spank.h>]])
])

# Where this Slurm loads plugins from, and has its configuration. Installed for the whole machine
# (under /usr, or without --prefix), the plugin goes there; under another prefix it stays below that.
AC_DEFUN([HPCT_SLURM_PLACES], [
  AC_ARG_WITH([spank-dir],
    [AS_HELP_STRING([--with-spank-dir=DIR], [install the SPANK plugin there @<:@where Slurm looks; LIBDIR/slurm with another prefix@:>@])],
    [], [with_spank_dir=])
  AC_ARG_WITH([slurm-conf-dir],
    [AS_HELP_STRING([--with-slurm-conf-dir=DIR], [install plugstack.conf.d/hpc-train.conf there @<:@/etc/slurm; SYSCONFDIR/slurm with another prefix@:>@])],
    [], [with_slurm_conf_dir=])
  AC_MSG_CHECKING([where Slurm loads plugins from])
  hpct_slurm_plugins= hpct_slurm_conf=/etc/slurm hpct_slurm_prefix=/usr
  AS_CASE([$with_slurm],
    [yes|no], [AS_IF([test ! -e /usr/include/slurm/slurm.h && test -e /usr/local/include/slurm/slurm.h],
      [hpct_slurm_prefix=/usr/local])],
    [hpct_slurm_prefix=$with_slurm])
  AS_IF([test "$hpct_slurm_prefix" != /usr && test -d "$hpct_slurm_prefix/etc" && test ! -e /etc/slurm/slurm.conf],
    [hpct_slurm_conf=$hpct_slurm_prefix/etc])
  hpct_multiarch=$($CC -print-multiarch 2>/dev/null)
  for hpct_dir in "$hpct_slurm_prefix/lib/$hpct_multiarch/slurm-wlm" "$hpct_slurm_prefix/lib64/slurm" \
      "$hpct_slurm_prefix/lib/slurm" "$hpct_slurm_prefix/lib/$hpct_multiarch/slurm"; do
    for hpct_file in "$hpct_dir"/auth_*.so; do # munge, slurm, or what else a site trusts
      AS_IF([test -z "$hpct_slurm_plugins" && test -e "$hpct_file"], [hpct_slurm_plugins=$hpct_dir])
    done
  done
  AS_IF([test -z "$hpct_slurm_plugins"],
    [hpct_slurm_plugins=$(timeout 5 scontrol show config 2>/dev/null |
      $SED -n 's/^PluginDir *= *\([[^:]]*\).*/\1/p')])
  AC_MSG_RESULT([${hpct_slurm_plugins:-no Slurm is installed here}])
  AS_CASE([$prefix], [NONE|/usr],
    [spankdir=${hpct_slurm_plugins:-'${libdir}/slurm'} slurmconfdir=$hpct_slurm_conf],
    [spankdir='${libdir}/slurm' slurmconfdir='${sysconfdir}/slurm'])
  AS_IF([test -n "$with_spank_dir"], [spankdir=$with_spank_dir])
  AS_IF([test -n "$with_slurm_conf_dir"], [slurmconfdir=$with_slurm_conf_dir])
  AC_SUBST([spankdir])
  AC_SUBST([slurmconfdir])
  AC_SUBST([SLURM_RELEASE], [$(printf '%d.%02d' $hpct_slurm_major $hpct_slurm_minor)])
])
