#!/bin/sh
# Unpacks a Debian package and its missing dependencies into a folder: no root, no system change, no daemon.
# usage: unpack.sh WORK PACKAGE FOLDER
set -eu
work=$1 package=$2 folder=$3
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial"

apt() {
  apt-get -q -o Dir::State="$work/state" -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$work/cache" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User= "$@"
}

# Older package lists name versions that the mirror may have dropped.
[ -n "$(find "$work/updated" -mtime -1 2>/dev/null)" ] || { apt update && touch "$work/updated"; }
plan=$(apt -s --no-install-recommends install "$package")
packages=$(printf '%s\n' "$plan" | awk '/^Inst/ {print $2}')
[ -n "$packages" ] || packages=$package
rm -rf "$folder.new" && mkdir -p "$folder.new/archives"
(cd "$folder.new/archives" && apt download $packages)
for archive in "$folder.new"/archives/*.deb; do dpkg -x "$archive" "$folder.new"; done
rm -rf "$folder.new/archives"
mv -T "$folder.new" "$folder"
