#!/usr/bin/env bash
# Makes an OCI image without a registry or a container engine: Debian 12, Python, pip and the package facts; the entry point is `facts`.
# usage: ci/package/oci.sh OUT.tar PACKAGE.deb     ci/package/oci.sh facts.oci.tar debs/facts_1.0.0-1_amd64.deb
# The archive is an OCI layout: `podman load -i OUT.tar`, `skopeo copy oci-archive:OUT.tar ...`. The same package and the same Debian give the same bytes.
# Exit: 0; 2 bad input; 3 a program is missing (apt-get install mmdebstrap umoci), or one failed.
set -euo pipefail
[[ $# -eq 2 && $1 == *.tar && -r $2 ]] || { sed -n '3s/^# //p' "$0" >&2; exit 2; }
for program in mmdebstrap umoci; do
    command -v "$program" >/dev/null || { echo "oci.sh: $program is missing; run this once: apt-get install $program" >&2; exit 3; }
done
out=$(realpath -- "$1") package=$(realpath -- "$2")
home=$(dirname -- "$(dirname -- "$(dirname -- "$(realpath -- "$0")")")")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$home" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
when=$(date -u -Iseconds -d "@$SOURCE_DATE_EPOCH")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

needs=$(dpkg-deb -f "$package" Depends | tr ',' '\n' | sed 's/^ *//; s/[ (|].*//' | paste -sd,)
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | head -n 1)
mmdebstrap --quiet --variant=minbase --include="ca-certificates,python3-pip,$needs" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook="upload $package /facts.deb" --customize-hook='chroot "$1" dpkg -i /facts.deb >/dev/null' \
    --customize-hook='rm -rf "$1/facts.deb" "$1/var/cache/ldconfig/aux-cache" "$1"/var/log/*' \
    bookworm "$stage/root.tar" "deb $mirror bookworm main" >&2 || exit 3

{
    umoci init --layout "$stage/image"
    umoci new --image "$stage/image:latest"
    umoci raw add-layer --image "$stage/image:latest" --history.created "$when" --history.created_by ci/package/oci.sh "$stage/root.tar"
    umoci config --image "$stage/image:latest" --created "$when" --history.created "$when" --architecture "$(dpkg-deb -f "$package" Architecture)" --os linux \
        --config.entrypoint facts --config.cmd help --config.env PATH=/usr/bin:/bin --config.env HOME=/root --config.workingdir /root \
        --config.label "org.opencontainers.image.version=$(dpkg-deb -f "$package" Version)" --config.label org.opencontainers.image.licenses=Apache-2.0
    umoci gc --layout "$stage/image"
} >&2 || exit 3
tar -C "$stage/image" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf "$out" blobs index.json oci-layout
