# What hpc-train is built with. HPCT_FOUND and HPCT_MISSING fill the tables shown at the end.

AC_DEFUN([HPCT_FOUND], [hpct_table="$hpct_table
  $1: $2"])
AC_DEFUN([HPCT_MISSING], [hpct_missing="$hpct_missing
  $1 not found: install $2 (Debian), or give $3"])

# HPCT_UNTESTED(KIND, DEBIAN PACKAGE): tests that cannot be built or run without the package; tests/build/kinds.t says so.
AC_DEFUN([HPCT_UNTESTED], [AS_VAR_APPEND([hpct_untested], ["$1: install $2;"])])

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
    [HPCT_FOUND([$3], [not found: $4 ($5)])
     HPCT_UNTESTED([what needs $3], [$5])])
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

# The header only: the library is loaded at run time, where a step has it.
AC_DEFUN([HPCT_WANT_PMIX], [
  HPCT_WANT_PKG([PMIX], [pmix >= 2], [PMIx], [ranks that srun starts without --hpc-train get their key from MPI], [libpmix-dev])
  # inline functions in it that -Wconversion finds
  AS_VAR_SET([PMIX_CFLAGS], [$(AS_ECHO(["$PMIX_CFLAGS"]) | sed 's/-I/-isystem /g')])
])

# HMAC, GMAC and X25519 of the tasks' connections.
AC_DEFUN([HPCT_NEED_LIBCRYPTO], [HPCT_PKG([LIBCRYPTO], [libcrypto >= 1.1.1], [libcrypto], [libssl-dev])])

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
    [HPCT_FOUND([cmocka], [not found: no unit tests (libcmocka-dev)])
     HPCT_UNTESTED([unit tests], [libcmocka-dev])])
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
    [HPCT_FOUND([HDF5], [not found: no .weights.h5 files of Keras (libhdf5-dev)])
     HPCT_UNTESTED([files of Keras (HDF5)], [libhdf5-dev])])
  AC_SUBST([HDF5_CPPFLAGS], ["$hpct_hdf5_cppflags -DHPCT_HDF5_LIBRARY='\"$hpct_hdf5_library\"'"])
  AM_CONDITIONAL([HAVE_HDF5], [test $hpct_have_hdf5 = yes])
])

# CUDA, cuDNN and NCCL, for the GPU module (nn/backend/cuda/): from a toolkit's folder, from the distribution,
# or from the folder "nvidia" of Python's packages, which has a folder for each library and no names
# without a version.
AC_DEFUN([HPCT_CUDA_PLACES], [
  hpct_cuda_root=
  AS_CASE([$with_cuda],
    [yes], [AS_IF([test -d /usr/local/cuda/include], [hpct_cuda_root=/usr/local/cuda])],
    [no], [], [hpct_cuda_root=$with_cuda])
  AS_IF([test -n "$hpct_cuda_root" && test ! -e "$hpct_cuda_root/include/cuda_runtime_api.h"], [
    # the compiler may know of another one
    AS_IF([test -z "$(ls "$hpct_cuda_root"/*/include/cuda_runtime_api.h 2>/dev/null)"],
      [AC_MSG_ERROR([CUDA was asked for with --with-cuda=$with_cuda, but it is not there])])
    for hpct_dir in "$hpct_cuda_root"/*/include; do
      AS_IF([test -d "$hpct_dir"], [hpct_cuda_cppflags="$hpct_cuda_cppflags -I$hpct_dir"])
    done
    for hpct_dir in "$hpct_cuda_root"/*/lib; do
      AS_IF([test -d "$hpct_dir"], [hpct_cuda_ldflags="$hpct_cuda_ldflags -L$hpct_dir"])
    done], [test -n "$hpct_cuda_root"], [
    hpct_cuda_cppflags="-I$hpct_cuda_root/include"
    hpct_cuda_ldflags=
    for hpct_dir in lib64 lib lib/x86_64-linux-gnu; do
      AS_IF([test -d "$hpct_cuda_root/$hpct_dir"],
        [hpct_cuda_ldflags="$hpct_cuda_ldflags -L$hpct_cuda_root/$hpct_dir"])
    done])
])

# HPCT_CUDA_LIBS(VARIABLE, NAMES): -lNAME of each, or its file with a version where there is no other.
AC_DEFUN([HPCT_CUDA_LIBS], [
  $1=
  for hpct_name in $2; do
    hpct_lib="-l$hpct_name"
    for hpct_dir in $hpct_cuda_ldflags; do
      for hpct_file in "${hpct_dir@%:@-L}/lib$hpct_name".so.*; do
        AS_IF([test -e "$hpct_file" && test ! -e "${hpct_dir@%:@-L}/lib$hpct_name.so"],
          [hpct_lib="-l:${hpct_file@%:@@%:@*/}"])
      done
    done
    $1="$$1 $hpct_lib"
  done
])

# HPCT_ONCE(WORDS): each word once.
AC_DEFUN([HPCT_ONCE], [echo "$1" | tr ' ' '\n' | $AWK 'NF && !seen@<:@@S|@1@:>@++' | tr '\n' ' '])

# nvcc, what it can compile for, and what is asked for: hpct_cuda_archs, and flags in CUDA_ARCH_FLAGS:
# machine code of each, and PTX of the newest, which drivers compile for GPUs that are newer still.
AC_DEFUN([HPCT_NVCC], [
  AC_ARG_ENABLE([cuda-archs],
    [AS_HELP_STRING([--enable-cuda-archs=LIST],
      [GPUs that there is machine code for, as in "80,90" (the default; newer ones compile it when
       they start), or all, which the module of a release has])], [], [enable_cuda_archs=80,90])
  AC_ARG_VAR([NVCC], [CUDA's compiler])
  hpct_have_nvcc=no
  AC_PATH_PROG([NVCC], [nvcc], [],
    [$hpct_cuda_root/bin:$(echo $hpct_cuda_root/*/bin | tr ' ' ':'):$PATH])
  AS_IF([test -n "$NVCC"], [
    hpct_known=" $("$NVCC" --list-gpu-arch 2>/dev/null | $SED -n 's/^compute_//p' | sort -n | tr '\n' ' ')"
    AS_CASE([$enable_cuda_archs], [all|yes],
      [hpct_wanted="70 75 80 86 89 90 100"], [hpct_wanted=$(echo "$enable_cuda_archs" | tr ',' ' ')])
    hpct_cuda_archs=
    CUDA_ARCH_FLAGS=
    for hpct_arch in $hpct_wanted; do
      AS_CASE([$hpct_known], [*" $hpct_arch "*], [
        hpct_cuda_archs="$hpct_cuda_archs $hpct_arch"
        hpct_newest=$hpct_arch
        CUDA_ARCH_FLAGS="$CUDA_ARCH_FLAGS -gencode=arch=compute_$hpct_arch,code=sm_$hpct_arch"], [
        AS_CASE([$enable_cuda_archs], [all|yes], [],
          [AC_MSG_ERROR([--enable-cuda-archs: $NVCC does not know $hpct_arch; it knows:$hpct_known])])])
    done
    CUDA_ARCH_FLAGS="$CUDA_ARCH_FLAGS -gencode=arch=compute_$hpct_newest,code=compute_$hpct_newest"
    AC_MSG_CHECKING([whether $NVCC works])
    AS_ECHO(["__global__ void f(float *x) { *x = 1; }"]) >conftest.cu
    AS_IF([AM_RUN_LOG(["$NVCC" $hpct_cuda_cppflags -arch=compute_$hpct_newest -ptx conftest.cu -o conftest.ptx])],
      [hpct_have_nvcc=yes])
    rm -f conftest.cu conftest.ptx
    AC_MSG_RESULT([$hpct_have_nvcc])])
  AC_SUBST([CUDA_ARCH_FLAGS])
])

# The module is built where CUDA, cuDNN and a working nvcc are.
AC_DEFUN([HPCT_WANT_CUDA], [
  HPCT_CUDA_PLACES
  HPCT_CUDA_LIBS([hpct_cuda_libs], [cudart cublas cublasLt])
  HPCT_CUDA_LIBS([hpct_cudnn_libs], [cudnn])
  HPCT_CUDA_LIBS([hpct_nccl_libs], [nccl])
  HPCT_OPTIONAL([cuda], [CUDA 12 or later], [$hpct_cuda_libs], [[#include <cuda_runtime_api.h>
#if CUDART_VERSION < 12000
#error too old
#endif]], [[cudaFree(0);]])
  AS_IF([test $hpct_have_cuda = no], [with_cudnn=no; with_nccl=no])
  HPCT_OPTIONAL([cudnn], [cuDNN 9], [$hpct_cudnn_libs], [[#include <cudnn.h>
#if CUDNN_MAJOR < 9
#error too old
#endif]], [[return (int) cudnnGetVersion();]])
  HPCT_OPTIONAL([nccl], [NCCL 2.18 or later], [$hpct_nccl_libs], [[#include <nccl.h>
#if NCCL_VERSION_CODE < 21800
#error too old
#endif]], [[int version; ncclGetVersion(&version);]])
  hpct_have_nvcc=no
  AS_IF([test $hpct_have_cudnn = yes], [HPCT_NVCC])
  AS_IF([test $hpct_have_nvcc = yes],
    [HPCT_FOUND([the GPU module], [for compute capabilities$hpct_cuda_archs, and newer ones])],
    [HPCT_FOUND([the GPU module], [no: it needs CUDA with nvcc, and cuDNN])
     hpct_untested="${hpct_untested}GPU module: install CUDA 12 or later with nvcc, and cuDNN 9;"
     AS_IF([test "$with_cuda" != yes && test "$with_cuda" != no],
       [AC_MSG_ERROR([--with-cuda=$with_cuda: the GPU module needs nvcc and cuDNN as well])])])
  AM_CONDITIONAL([HAVE_CUDA], [test $hpct_have_nvcc = yes])
  AM_CONDITIONAL([HAVE_NCCL], [test $hpct_have_nvcc = yes && test $hpct_have_nccl = yes])
  CUDA_CPPFLAGS=$(HPCT_ONCE([$hpct_cuda_cppflags $hpct_cudnn_cppflags $hpct_nccl_cppflags]) |
    $SED 's/-I/-isystem /g')
  hpct_dirs=$(HPCT_ONCE([$hpct_cuda_ldflags $hpct_cudnn_ldflags $hpct_nccl_ldflags]))
  CUDA_LIBS="$hpct_dirs $(echo "$hpct_dirs" | $SED 's/-L/-Wl,-rpath,/g') $hpct_cuda_libs $hpct_cudnn_libs"
  NCCL_LIBS=$hpct_nccl_libs
  NVCC_WARNINGS="-Xcompiler=-Wall,-Wextra"
  AS_IF([test "$enable_werror" = yes], [NVCC_WARNINGS="$NVCC_WARNINGS -Werror=all-warnings"])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([NCCL_LIBS])
  AC_SUBST([NVCC_WARNINGS])
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
