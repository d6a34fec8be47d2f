#!/bin/sh
# Chromium with its own sandbox where the container may make user namespaces; else the container alone is the sandbox.
# CHROMIUM_SANDBOX=required refuses to start without it. Docker's and Kubernetes' default seccomp profiles do not allow it.
set -eu
chromium=${CHROMIUM:-/usr/bin/chromium-headless-shell}
if unshare --user true 2>/dev/null; then exec "$chromium" "$@"; fi
if [ "${CHROMIUM_SANDBOX:-auto}" = required ]; then
  echo "no user namespaces here, so Chromium has no sandbox, and CHROMIUM_SANDBOX=required" >&2
  exit 1
fi
exec "$chromium" --no-sandbox "$@"
