# Runs as root in mount and PID namespaces of its own. Arguments: the release; the mirror; the tar file
# to write; its owner.
set -eu

mount -t tmpfs -o mode=755 tmpfs /mnt
debootstrap --variant=minbase --include=systemd,systemd-sysv,iproute2 "$1" /mnt/root "$2"
cd /mnt/root
# What nobody asks for in a test.
rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/locale/* usr/share/man/* usr/share/doc/*
tar --create --one-file-system --numeric-owner --file "$3.next" .
chown "$4" "$3.next"
mv "$3.next" "$3"
