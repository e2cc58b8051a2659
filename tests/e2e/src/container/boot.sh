# Process 1 of a container, until it becomes systemd: makes its file systems, and goes into them. Runs
# as root in fresh PID, mount, UTS, IPC and cgroup namespaces. Arguments: a directory with a Debian,
# which is left as it is; a directory of the container's own.
set -eu
debian=$1 own=$2

# As the programs outside see us: /proc is still theirs.
read -r pid _ </proc/self/stat
echo "$pid" >"$own/pid.next"

mkdir -p "$own/layer/upper" "$own/layer/work" "$own/root"
mount -t overlay overlay -o "lowerdir=$debian,upperdir=$own/layer/upper,workdir=$own/layer/work" \
    "$own/root"
cd "$own/root"

# What is the machine's can be read. What is the network namespace's is the container's own.
mount -t proc proc proc
mount --bind proc/sys/net run
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
[ ! -e proc/sysrq-trigger ] || mount --bind /dev/null proc/sysrq-trigger
mount --move run proc/sys/net
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
# systemd mounts it on a host, and in a container does not. This one has pins of its own.
mount -t bpf -o nosuid,nodev,noexec,mode=700 bpf sys/fs/bpf

mount -t tmpfs -o mode=755,nosuid tmpfs dev
for node in null zero full random urandom tty; do
    touch "dev/$node"
    mount --bind "/dev/$node" "dev/$node"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp

hostname spillway 2>/dev/null || true
mv "$own/pid.next" "$own/pid"
pivot_root . mnt
umount -l /mnt
# Nothing that would reach the machine: its clock, its modules, its ports, its end.
exec env -i container=spillway PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio,-sys_boot,-syslog,-mac_admin,-wake_alarm \
    -- /lib/systemd/systemd --show-status=no --log-target=console
