/** All commands, in the order of the help. Only the one that is called is loaded, and all of them for the help. */
import type { Command } from 'commander'

type Define = (program: Command) => void

const COMMANDS: Record<string, () => Promise<Define>> = {
  run: async () => (await import('./run.ts')).defineRun,
  crawl: async () => (await import('./crawl.ts')).defineCrawl,
  start: async () => (await import('./start.ts')).defineStart,
  produce: async () => (await import('./produce.ts')).defineProduce,
  worker: async () => (await import('./worker.ts')).defineWorker,
  serve: async () => (await import('./serve.ts')).defineServe,
  submit: async () => (await import('./submit.ts')).defineSubmit,
  collect: async () => (await import('./collect.ts')).defineCollect,
  schedule: async () => (await import('./schedule.ts')).defineSchedule,
  webhook: async () => (await import('./webhook.ts')).defineWebhook,
  key: async () => (await import('./key.ts')).defineKey,
  audit: async () => (await import('./audit.ts')).defineAudit,
  autoscale: async () => (await import('./autoscale.ts')).defineAutoscale,
  ps: async () => (await import('./ps.ts')).definePs,
  watch: async () => (await import('./watch.ts')).defineWatch,
  logs: async () => (await import('./logs.ts')).defineLogs,
  stats: async () => (await import('./stats.ts')).defineStats,
  pause: async () => (await import('./steer.ts')).definePause,
  resume: async () => (await import('./steer.ts')).defineResume,
  cancel: async () => (await import('./steer.ts')).defineCancel,
  retry: async () => (await import('./retry.ts')).defineRetry,
  dlq: async () => (await import('./dlq.ts')).defineDlq,
  export: async () => (await import('./export.ts')).defineExport,
  files: async () => (await import('./files.ts')).defineFiles,
  quality: async () => (await import('./quality.ts')).defineQuality,
  history: async () => (await import('./history.ts')).defineHistory,
  diff: async () => (await import('./diff.ts')).defineDiff,
  try: async () => (await import('./try.ts')).defineTry,
  shell: async () => (await import('./shell.ts')).defineShell,
  fetch: async () => (await import('./fetch.ts')).defineFetch,
  map: async () => (await import('./map.ts')).defineMap,
  robots: async () => (await import('./robots.ts')).defineRobots,
  list: async () => (await import('./list.ts')).defineList,
  test: async () => (await import('./test.ts')).defineTest,
  check: async () => (await import('./check.ts')).defineCheck,
  init: async () => (await import('./init.ts')).defineInit,
  new: async () => (await import('./new.ts')).defineNew,
  demo: async () => (await import('./demo.ts')).defineDemo,
  doctor: async () => (await import('./doctor.ts')).defineDoctor,
  explain: async () => (await import('./explain-command.ts')).defineExplain,
  config: async () => (await import('./config.ts')).defineConfig,
  bench: async () => (await import('./bench.ts')).defineBench,
  completion: async () => (await import('./completion.ts')).defineCompletion,
}

export async function defineCommands(program: Command, word: string | undefined): Promise<void> {
  const called = word === undefined ? undefined : COMMANDS[word]
  // Completion is made from the whole tree of commands.
  const wanted = called === undefined || word === 'completion' ? Object.values(COMMANDS) : [called]
  for (const load of wanted) (await load())(program)
}
