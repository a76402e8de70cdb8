# Compiler warnings, sanitizers, fuzzing: how the tree is built.

# Warnings we keep clean under; --enable-werror makes them errors (CI).
AC_DEFUN([HPCT_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat warnings as errors])], [], [enable_werror=no])
  WARN_CFLAGS="-Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes"
  WARN_CFLAGS="$WARN_CFLAGS -Wmissing-prototypes -Wformat=2 -Wundef -Wpointer-arith -Wcast-qual -Wvla"
  AS_IF([test "$enable_werror" = yes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
  AC_SUBST([WARN_CFLAGS])
  HARDEN_CFLAGS="-fvisibility=hidden -fno-strict-aliasing -fstack-protector-strong"
  HARDEN_LDFLAGS="-Wl,-z,relro -Wl,-z,now"
  AC_SUBST([HARDEN_CFLAGS])
  AC_SUBST([HARDEN_LDFLAGS])
])

# ASan and UBSan over everything; a finding ends the program.
AC_DEFUN([HPCT_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers], [build with AddressSanitizer and UBSan])],
    [], [enable_sanitizers=no])
  AS_IF([test "$enable_sanitizers" = yes],
    [SAN_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g"])
  AC_SUBST([SAN_CFLAGS])
  AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" = yes])
])

# Fuzz targets are always built with a driver that replays their corpus (make check);
# with --enable-fuzzing and clang they are linked with libFuzzer instead.
AC_DEFUN([HPCT_FUZZING], [
  AC_ARG_ENABLE([fuzzing],
    [AS_HELP_STRING([--enable-fuzzing], [link tests/fuzz with libFuzzer (CC=clang)])],
    [], [enable_fuzzing=no])
  AM_CONDITIONAL([FUZZING], [test "$enable_fuzzing" = yes])
  AS_IF([test "$enable_fuzzing" = yes], [SAN_CFLAGS="$SAN_CFLAGS -fsanitize=fuzzer-no-link -DHPCT_MAX_NODES=2000"])
])

# The linker of test programs; binutils' own takes three times as long.
AC_DEFUN([HPCT_FAST_LINKER], [
  hpct_ldflags=$LDFLAGS
  for FAST_LINKER in -fuse-ld=lld -fuse-ld=gold ''; do
    LDFLAGS="$hpct_ldflags $SAN_CFLAGS $FAST_LINKER"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [break])
  done
  LDFLAGS=$hpct_ldflags
  AC_SUBST([FAST_LINKER])
])
