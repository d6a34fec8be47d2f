#!/bin/sh
# Regenerates package-lock.json. Optional packages for other platforms that the configured registry lacks are entered by
# name and version, so that `npm ci` accepts the file everywhere.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp package.json .npmrc "$work/"
(cd "$work" && npm install --package-lock-only --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null)
.deps/bin/node - "$work/package-lock.json" >package-lock.json <<'JS'
const lock = JSON.parse(require('node:fs').readFileSync(process.argv[2], 'utf8'))
const packages = lock.packages
for (const [at, entry] of Object.entries(packages)) {
  const present = Object.keys(entry.optionalDependencies ?? {}).find((name) => packages[`node_modules/${name}`])
  if (at === '' || present === undefined) continue
  const { license, engines, dev } = packages[`node_modules/${present}`]
  for (const [name, version] of Object.entries(entry.optionalDependencies)) {
    if (packages[`node_modules/${name}`]) continue
    const [os, cpu, libc] = name.split('/').at(-1).replace(/^(?:cli|typescript)-/, '').split('-')
    packages[`node_modules/${name}`] = { version, cpu: [cpu], ...(dev ? { dev } : {}), ...(libc ? { libc: [libc] } : {}), license, optional: true, os: [os], ...(engines ? { engines } : {}) }
  }
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)))
console.log(JSON.stringify(lock, null, 2))
JS
