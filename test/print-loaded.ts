/** Environment for a run under test: prints what is loaded when the run opens its first socket, files as URLs and Node's own as `node:name`. */
const PROGRAM = `
  import { subscribe, unsubscribe } from 'node:diagnostics_channel'
  import { writeSync } from 'node:fs'
  import { registerHooks } from 'node:module'
  const loaded = new Set()
  registerHooks({ load: (url, context, next) => (loaded.add(url), next(url, context)) })
  subscribe('net.client.socket', function print() {
    unsubscribe('net.client.socket', print)
    const builtin = process.moduleLoadList.filter((name) => name.startsWith('NativeModule '))
    writeSync(1, JSON.stringify([...loaded, ...builtin.map((name) => name.replace('NativeModule ', 'node:'))]))
  })`

export const PRINT_LOADED = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(PROGRAM)}` }
