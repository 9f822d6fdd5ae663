# Runs a command as a pod of the chart does: another user, no capability, and nothing to write but /srv/seamline and /tmp.
# POD is what is at /srv/seamline; READ are folders below /tmp or /root that the command needs.
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir /mnt/pod
mount --bind "$POD" /mnt/pod
for folder in $READ; do
  mkdir -p "/mnt/read$folder"
  mount --bind "$folder" "/mnt/read$folder"
done
mount -t tmpfs -o mode=755 tmpfs /root
mount -t tmpfs -o mode=755 tmpfs /srv
mount -t tmpfs -o mode=1777 tmpfs /tmp
for folder in $READ; do
  mkdir -p "$folder"
  mount --bind "/mnt/read$folder" "$folder"
  mount -o remount,bind,ro "$folder"
done
# The image knows its user; without a home Java has none.
{ cat /etc/passwd; echo 'seamline:x:50000:50000::/home/seamline:/bin/sh'; } >/mnt/passwd
mount --bind /mnt/passwd /etc/passwd
mkdir /srv/seamline
mount --bind /mnt/pod /srv/seamline
mount -o remount,bind,ro /
unset POD READ
cd "$WORKDIR"
exec setpriv --reuid 50000 --regid 50000 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
