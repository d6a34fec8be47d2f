#!/bin/sh
# Installs what the project needs into git-ignored folders: Node 24 if the machine's is older, and the locked npm packages.
set -eu
cd "$(dirname "$0")/.."
node_version=24.21.0

say() { printf '%s\n' "setup: $*"; }
fail() { printf '%s\n' "setup: $*" >&2; exit 1; }

command -v npm >/dev/null 2>&1 || fail "npm is missing. Install Node.js (any version from 18) with npm, then try again."

# Use the machine's own Node: ours may come first on the caller's PATH, and must not be linked to itself.
PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -vxF "$PWD/.deps/bin" | paste -sd: -)
major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)
if [ "$major" -ge 24 ]; then
  mkdir -p .deps/bin
  ln -sf "$(command -v node)" .deps/bin/node
elif [ "$(.deps/bin/node -p process.version 2>/dev/null)" != "v$node_version" ]; then
  os=$(uname -s | tr '[:upper:]' '[:lower:]')
  case "$(uname -m)" in x86_64|amd64) arch=x64 ;; aarch64|arm64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
  say "this machine has Node ${major}; bringing Node $node_version from npm into .deps/ (once)"
  # The package contains the plain binary: no install script, no further download.
  npm install --prefix .deps --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "node-$os-$arch@$node_version" >/dev/null ||
    fail "npm has no Node $node_version for $os-$arch. Install Node 24 yourself and try again."
  mkdir -p .deps/bin
  ln -sf "../node_modules/node-$os-$arch/bin/node" .deps/bin/node
  .deps/bin/node -p process.version >/dev/null || fail "the Node from npm does not start on this machine. Install Node 24 yourself and try again."
fi

if ! cmp -s package-lock.json .deps/installed-lock.json || [ ! -d node_modules ]; then
  say "installing the locked packages"
  PATH="$PWD/.deps/bin:$PATH" npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  cp package-lock.json .deps/installed-lock.json.tmp
  mv .deps/installed-lock.json.tmp .deps/installed-lock.json # a copy of .deps made with hard links keeps its own
fi
