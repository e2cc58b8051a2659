# Runs as root in a mount namespace of its own, so that the policy below is seen by this
# installation only and is gone when it ends, however it ends. Arguments: "update" or "keep",
# then the packages.
set -eu

policy=/usr/sbin/policy-rc.d
mark="spillway: stands in for policy-rc.d; not executable, so without effect; safe to remove"

# A file to mount on. Not executable: invoke-rc.d and deb-systemd-invoke pass over it.
made=
if [ ! -e "$policy" ]; then
    echo "# $mark" >"$policy"
    chmod 644 "$policy"
fi
if grep -qF "$mark" "$policy"; then
    made=yes
fi

# 101: the action is forbidden. What asks is told so, and starts nothing.
mount -t tmpfs -o mode=755 spillway /mnt
printf '#!/bin/sh\nexit 101\n' >/mnt/policy-rc.d
chmod 755 /mnt/policy-rc.d
mount --bind /mnt/policy-rc.d "$policy"
umount --lazy /mnt

status=0
export DEBIAN_FRONTEND=noninteractive
if [ "$1" = update ]; then
    apt-get --quiet update || status=$?
fi
shift
if [ "$status" = 0 ]; then
    apt-get --quiet install --yes --no-install-recommends "$@" || status=$?
fi

umount "$policy"
if [ "$made" = yes ]; then
    rm -f "$policy"
fi
exit "$status"
