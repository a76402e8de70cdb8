# What hpc-train is built with. HPCT_FOUND and HPCT_MISSING fill the tables shown at the end.

AC_DEFUN([HPCT_FOUND], [hpct_table="$hpct_table
  $1: $2"])
AC_DEFUN([HPCT_MISSING], [hpct_missing="$hpct_missing
  $1 not found: install $2 (Debian), or give $3"])

# HPCT_WITH_DIR(NAME, WHAT): --with-NAME=PREFIX adds PREFIX/include and PREFIX/lib(64) to
# NAME's own flags; --without-NAME leaves an optional part out.
AC_DEFUN([HPCT_WITH_DIR], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=DIR], [$2: its installation prefix])],
    [], [with_$1=yes])
  hpct_$1_cppflags=
  hpct_$1_ldflags=
  AS_CASE([$with_$1], [yes|no], [], [
    AS_IF([test ! -d "$with_$1"],
      [AC_MSG_ERROR([--with-$1=$with_$1: there is no such folder; give its installation prefix])])
    hpct_$1_cppflags="-I$with_$1/include"
    for hpct_dir in lib64 lib lib/x86_64-linux-gnu lib/aarch64-linux-gnu; do
      AS_IF([test -d "$with_$1/$hpct_dir"],
        [hpct_$1_ldflags="$hpct_$1_ldflags -L$with_$1/$hpct_dir"])
    done])
])

# HPCT_TRY_LINK(NAME, LIBS, PROLOGUE, BODY, THEN, ELSE): with NAME's own flags.
AC_DEFUN([HPCT_TRY_LINK], [
  hpct_save_CPPFLAGS=$CPPFLAGS; hpct_save_LDFLAGS=$LDFLAGS; hpct_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $hpct_$1_cppflags"
  LDFLAGS="$LDFLAGS $hpct_$1_ldflags"
  LIBS="$2 $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([$3], [$4])], [hpct_linked=yes], [hpct_linked=no])
  CPPFLAGS=$hpct_save_CPPFLAGS; LDFLAGS=$hpct_save_LDFLAGS; LIBS=$hpct_save_LIBS
  AS_IF([test $hpct_linked = yes], [$5], [$6])
])

# HPCT_PKG(VARIABLE, MODULE, SHOWN NAME, DEBIAN PACKAGE)
AC_DEFUN([HPCT_PKG], [
  PKG_CHECK_MODULES([$1], [$2],
    [HPCT_FOUND([$3], [$($PKG_CONFIG --modversion "$2" 2>/dev/null)])],
    [HPCT_MISSING([$3], [$4], [PKG_CONFIG_PATH=DIR])])
])

AC_DEFUN([HPCT_NEED_JANSSON], [HPCT_PKG([JANSSON], [jansson >= 2.12], [jansson], [libjansson-dev])])
# Headers only: the library is loaded at run time, where a node has it.
AC_DEFUN([HPCT_NEED_HWLOC],
  [HPCT_PKG([HWLOC], [hwloc >= 2.1], [hwloc], [libhwloc-dev])])
AC_DEFUN([HPCT_NEED_ZLIB], [HPCT_PKG([ZLIB], [zlib], [zlib], [zlib1g-dev])])
AC_DEFUN([HPCT_NEED_LIBARCHIVE],
  [HPCT_PKG([LIBARCHIVE], [libarchive >= 3.4], [libarchive], [libarchive-dev])])

# HPCT_WANT_PKG(VARIABLE, MODULE, SHOWN NAME, WHAT IS LOST WITHOUT IT, DEBIAN PACKAGE): HAVE_VARIABLE when there.
AC_DEFUN([HPCT_WANT_PKG], [
  PKG_CHECK_MODULES([$1], [$2],
    [AC_DEFINE([HAVE_$1], [1], [$3 is there.])
     HPCT_FOUND([$3], [$($PKG_CONFIG --modversion "$2" 2>/dev/null)])],
    [HPCT_FOUND([$3], [not found: $4 ($5)])])
])

AC_DEFUN([HPCT_WANT_LIBDEFLATE], [
  HPCT_WANT_PKG([LIBDEFLATE], [libdeflate], [libdeflate], [.gz files take twice as long], [libdeflate-dev])
])

AC_DEFUN([HPCT_WANT_PICTURES], [
  HPCT_WANT_PKG([LIBJPEG], [libjpeg], [libjpeg], [JPEG pictures cannot be read], [libjpeg-dev])
  HPCT_WANT_PKG([LIBPNG], [libpng >= 1.6], [libpng], [PNG pictures cannot be read], [libpng-dev])
])

# Debian's has versions for AVX2 and AVX512 beside the plain one, picked at run time.
AC_DEFUN([HPCT_NEED_XXHASH], [
  HPCT_PKG([XXHASH], [libxxhash >= 0.8.0], [xxHash], [libxxhash-dev])
  hpct_xxhash_cppflags=$XXHASH_CFLAGS
  hpct_xxhash_ldflags=
  HPCT_TRY_LINK([xxhash], [$XXHASH_LIBS], [[#include <xxhash.h>
#include <xxh_x86dispatch.h>]], [[return (int) XXH3_64bits_dispatch("", 0);]],
    [AC_DEFINE([HAVE_XXH_DISPATCH], [1], [xxHash chooses its instructions at run time.])], [])
])

AC_DEFUN([HPCT_NEED_MUNGE], [HPCT_PKG([MUNGE], [munge], [munge], [libmunge-dev])])

# The plugin is built for one Slurm major.minor: its headers decide which.
AC_DEFUN([HPCT_NEED_SLURM], [
  AC_MSG_CHECKING([for slurm/spank.h])
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
  CPPFLAGS=$hpct_save_CPPFLAGS
  AC_MSG_RESULT([$hpct_slurm])
  AS_IF([test $hpct_slurm = no],
    [HPCT_MISSING([Slurm 22.05 or later (slurm/spank.h)], [libslurm-dev], [--with-slurm=DIR])])
  AC_SUBST([SLURM_CPPFLAGS], [$hpct_slurm_cppflags])
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
  hpct_slurm_plugins=
  hpct_slurm_prefix=/usr
  AS_CASE([$with_slurm], [yes|no], [], [hpct_slurm_prefix=$with_slurm])
  hpct_multiarch=$($CC -print-multiarch 2>/dev/null)
  for hpct_dir in "$hpct_slurm_prefix/lib/$hpct_multiarch/slurm-wlm" "$hpct_slurm_prefix/lib64/slurm" \
      "$hpct_slurm_prefix/lib/slurm" "$hpct_slurm_prefix/lib/$hpct_multiarch/slurm"; do
    AS_IF([test -z "$hpct_slurm_plugins" && test -e "$hpct_dir/auth_munge.so"],
      [hpct_slurm_plugins=$hpct_dir])
  done
  AS_IF([test -z "$hpct_slurm_plugins"],
    [hpct_slurm_plugins=$(timeout 5 scontrol show config 2>/dev/null |
      $SED -n 's/^PluginDir *= *\([[^:]]*\).*/\1/p')])
  AC_MSG_RESULT([${hpct_slurm_plugins:-no Slurm is installed here}])
  AS_CASE([$prefix], [NONE|/usr],
    [spankdir=${hpct_slurm_plugins:-'${libdir}/slurm'} slurmconfdir=/etc/slurm],
    [spankdir='${libdir}/slurm' slurmconfdir='${sysconfdir}/slurm'])
  AS_IF([test -n "$with_spank_dir"], [spankdir=$with_spank_dir])
  AS_IF([test -n "$with_slurm_conf_dir"], [slurmconfdir=$with_slurm_conf_dir])
  AC_SUBST([spankdir])
  AC_SUBST([slurmconfdir])
  AC_SUBST([SLURM_RELEASE], [$(printf '%d.%02d' $hpct_slurm_major $hpct_slurm_minor)])
])

# The compiler wrapper knows the flags; only agent/comm/mpi uses them.
AC_DEFUN([HPCT_NEED_MPI], [
  AS_CASE([$with_mpi], [yes|no], [hpct_mpi_path=$PATH],
    [hpct_mpi_path="$with_mpi/bin"])
  AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc], [], [$hpct_mpi_path])
  hpct_mpi=no
  AS_IF([test -n "$MPICC"], [
    MPI_CFLAGS=$($MPICC --showme:compile 2>/dev/null)
    MPI_LIBS=$($MPICC --showme:link 2>/dev/null)
    hpct_mpi_cppflags=$MPI_CFLAGS
    AC_MSG_CHECKING([for Open MPI])
    HPCT_TRY_LINK([mpi], [$MPI_LIBS], [[#include <mpi.h>
#if !defined(OMPI_MAJOR_VERSION) || OMPI_MAJOR_VERSION * 100 + OMPI_MINOR_VERSION < 401
#error too old
#endif]], [[MPI_Init(0, 0);]], [hpct_mpi=yes])
    AC_MSG_RESULT([$hpct_mpi])])
  AS_IF([test $hpct_mpi = yes],
    [HPCT_FOUND([Open MPI], [$($MPICC --showme:version 2>/dev/null | $SED 's/.*Open MPI \([[0-9.]]*\).*/\1/')])],
    [HPCT_MISSING([Open MPI 4.1 or later (mpicc)], [libopenmpi-dev openmpi-bin], [--with-mpi=DIR])])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
])

AC_DEFUN([HPCT_NEED_ONEDNN], [
  AC_MSG_CHECKING([for oneDNN])
  HPCT_TRY_LINK([onednn], [-ldnnl], [[#include <oneapi/dnnl/dnnl.h>
#if DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR < 206
#error too old
#endif]], [[return (int) dnnl_version()->major;]], [hpct_onednn=yes], [hpct_onednn=no])
  AC_MSG_RESULT([$hpct_onednn])
  AS_IF([test $hpct_onednn = yes], [
    hpct_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $hpct_onednn_cppflags"
    AC_COMPUTE_INT([hpct_onednn_major], [DNNL_VERSION_MAJOR], [[#include <oneapi/dnnl/dnnl.h>]])
    AC_COMPUTE_INT([hpct_onednn_minor], [DNNL_VERSION_MINOR], [[#include <oneapi/dnnl/dnnl.h>]])
    CPPFLAGS=$hpct_save_CPPFLAGS
    HPCT_FOUND([oneDNN], [$hpct_onednn_major.$hpct_onednn_minor])],
    [HPCT_MISSING([oneDNN 2.6 or later], [libdnnl-dev], [--with-onednn=DIR])])
  AC_SUBST([ONEDNN_CPPFLAGS], [$hpct_onednn_cppflags])
  AC_SUBST([ONEDNN_LIBS], ["$hpct_onednn_ldflags -ldnnl"])
])

# Unit tests only.
AC_DEFUN([HPCT_WANT_CMOCKA], [
  PKG_CHECK_MODULES([CMOCKA], [cmocka >= 1.1.5], [hpct_cmocka=yes], [hpct_cmocka=no])
  AS_IF([test $hpct_cmocka = yes], [HPCT_FOUND([cmocka], [unit tests will be built])],
    [HPCT_FOUND([cmocka], [not found: no unit tests (libcmocka-dev)])])
  AM_CONDITIONAL([HAVE_CMOCKA], [test $hpct_cmocka = yes])
])

# HPCT_OPTIONAL(NAME, SHOWN, LIBS, PROLOGUE, BODY): one line of the table; sets hpct_have_NAME.
AC_DEFUN([HPCT_OPTIONAL], [
  hpct_have_$1=no
  AS_IF([test "$with_$1" != no], [
    AC_MSG_CHECKING([for $2])
    hpct_$1_cppflags="$hpct_$1_cppflags $hpct_cuda_cppflags"
    hpct_$1_ldflags="$hpct_$1_ldflags $hpct_cuda_ldflags"
    HPCT_TRY_LINK([$1], [$3], [$4], [$5], [hpct_have_$1=yes])
    AC_MSG_RESULT([$hpct_have_$1])
    AS_IF([test $hpct_have_$1 = no && test "$with_$1" != yes],
      [AC_MSG_ERROR([$2 was asked for with --with-$1=$with_$1, but it is not there])])])
  AS_IF([test $hpct_have_$1 = yes], [HPCT_FOUND([$2], [found])], [HPCT_FOUND([$2], [not found])])
])

# HDF5, for Keras' files of weights: loaded at run time, when such a file is named, for it brings some
# thirty libraries along. The name to load is that of the library found here. Debian has its files
# under names of their own, which pkg-config knows.
AC_DEFUN([HPCT_WANT_HDF5], [
  hpct_have_hdf5=no
  AS_IF([test "$with_hdf5" != no], [
    hpct_hdf5_libs=-lhdf5
    AS_IF([test "$with_hdf5" = yes], [
      PKG_CHECK_MODULES([HDF5], [hdf5 >= 1.10],
        [hpct_hdf5_cppflags=$HDF5_CFLAGS; hpct_hdf5_libs=$HDF5_LIBS], [:])])
    AC_MSG_CHECKING([for HDF5 1.10 or later])
    hpct_save_CPPFLAGS=$CPPFLAGS; hpct_save_LDFLAGS=$LDFLAGS; hpct_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $hpct_hdf5_cppflags"
    LDFLAGS="$LDFLAGS $hpct_hdf5_ldflags"
    LIBS="$hpct_hdf5_libs $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hdf5.h>
#if H5_VERS_MAJOR * 100 + H5_VERS_MINOR < 110
#error too old
#endif]], [[return H5open();]])], [
      hpct_hdf5_library=$(readelf -d conftest$EXEEXT 2>/dev/null | tr -d '@<:@@:>@' |
        $AWK '/NEEDED.*libhdf5/ { print $NF; exit }')
      AS_IF([test -n "$hpct_hdf5_library"], [hpct_have_hdf5=yes])])
    CPPFLAGS=$hpct_save_CPPFLAGS; LDFLAGS=$hpct_save_LDFLAGS; LIBS=$hpct_save_LIBS
    AC_MSG_RESULT([$hpct_have_hdf5])
    AS_IF([test $hpct_have_hdf5 = no && test "$with_hdf5" != yes],
      [AC_MSG_ERROR([HDF5 was asked for with --with-hdf5=$with_hdf5, but it is not there])])])
  AS_IF([test $hpct_have_hdf5 = yes], [
    HPCT_FOUND([HDF5], [found: .weights.h5 files of Keras])
    AS_CASE([$with_hdf5], [yes], [], [
      for hpct_dir in lib64 lib; do
        AS_IF([test -e "$with_hdf5/$hpct_dir/$hpct_hdf5_library"],
          [hpct_hdf5_library="$with_hdf5/$hpct_dir/$hpct_hdf5_library"; break])
      done])],
    [HPCT_FOUND([HDF5], [not found: no .weights.h5 files of Keras (libhdf5-dev)])])
  AC_SUBST([HDF5_CPPFLAGS], ["$hpct_hdf5_cppflags -DHPCT_HDF5_LIBRARY='\"$hpct_hdf5_library\"'"])
  AM_CONDITIONAL([HAVE_HDF5], [test $hpct_have_hdf5 = yes])
])

# GPUs: looked for and reported; the version is built for CPUs alone so far.
AC_DEFUN([HPCT_WANT_CUDA], [
  AS_IF([test "$with_cuda" = yes && test -d /usr/local/cuda/include], [
    hpct_cuda_cppflags="-I/usr/local/cuda/include"
    hpct_cuda_ldflags="-L/usr/local/cuda/lib64"])
  HPCT_OPTIONAL([cuda], [CUDA 12 or later], [-lcudart -lcublas], [[#include <cuda_runtime_api.h>
#if CUDART_VERSION < 12000
#error too old
#endif]], [[cudaFree(0);]])
  AS_IF([test $hpct_have_cuda = no], [with_cudnn=no; with_nccl=no])
  HPCT_OPTIONAL([cudnn], [cuDNN 9], [-lcudnn], [[#include <cudnn.h>
#if CUDNN_MAJOR < 9
#error too old
#endif]], [[return (int) cudnnGetVersion();]])
  HPCT_OPTIONAL([nccl], [NCCL 2.18 or later], [-lnccl], [[#include <nccl.h>
#if NCCL_VERSION_CODE < 21800
#error too old
#endif]], [[int version; ncclGetVersion(&version);]])
])

AC_DEFUN([HPCT_REPORT_MISSING], [
  AS_IF([test -n "$hpct_missing"], [AC_MSG_ERROR([cannot build without these:$hpct_missing])])
])

AC_DEFUN([HPCT_REPORT], [
  AS_ECHO(["
hpc-train $PACKAGE_VERSION will be built with$hpct_table
  sanitizers: $enable_sanitizers
  installed under: $prefix"])
])
