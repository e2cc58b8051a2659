# Runs as root in a mount namespace of its own, so that the policy below is seen by this
# installation only and is gone when it ends, however it ends. Arguments: "update" or "keep"; the
# servers that are not to start at boot, in one word; then the packages.
set -eu

policy=/usr/sbin/policy-rc.d
mark="spillway: stands in for policy-rc.d; not executable, so without effect; safe to remove"

# One at a time. What apt started keeps this open: should we be killed, the next one waits for it,
# for to remove the file below is to take the policy away from an installation still under way.
exec 9>/run/spillway-install.lock
flock 9

# Ours, from now or from an installation that was killed. What somebody else put there stays.
remove_mark() {
    umount "$policy" 2>/dev/null || true
    if grep -qF "$mark" "$policy"; then
        rm -f "$policy"
    fi
}
trap remove_mark EXIT
trap 'exit 130' HUP INT TERM

# A file to mount on. Not executable: invoke-rc.d and deb-systemd-invoke pass over it.
if [ ! -e "$policy" ]; then
    echo "# $mark" >"$policy"
    chmod 644 "$policy"
fi

# 101: the action is forbidden. What asks is told so, and starts nothing.
mount -t tmpfs -o mode=755 spillway /mnt
printf '#!/bin/sh\nexit 101\n' >/mnt/policy-rc.d
chmod 755 /mnt/policy-rc.d
mount --bind /mnt/policy-rc.d "$policy"
umount --lazy /mnt

export DEBIAN_FRONTEND=noninteractive
if [ "$1" = update ]; then
    apt-get --quiet update
fi
export SPILLWAY_SERVERS="$2"
shift 2
# Run by apt after dpkg, also if we are gone by then. systemctl needs no running systemd for this,
# and takes care of sysvinit's links; without it, there are only those.
out_of_boot='for name in $SPILLWAY_SERVERS; do
    [ -e "/etc/init.d/$name" ] || continue
    if command -v systemctl >/dev/null; then
        systemctl --quiet disable "$name"
    else
        update-rc.d "$name" disable
    fi
done'
if [ $# -gt 0 ]; then
    apt-get --quiet --option DPkg::Lock::Timeout=300 --option DPkg::Post-Invoke::="$out_of_boot" \
        install --yes --no-install-recommends "$@"
fi
