#!/bin/sh
# Stands for bpf-linker ($SPILLWAY_LINKER). Whenever that adds an object file, it walks through all that it has linked
# before; compiler_builtins has some 380 of them, and rustc names it last. Named first, they take 2 s of a program instead of 12.
set -eu

builtins=
for argument; do
    shift
    case $argument in
    */libcompiler_builtins-*.rlib) builtins=$argument ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec "$SPILLWAY_LINKER" ${builtins:+"$builtins"} "$@"
