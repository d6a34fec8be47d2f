/** All commands, in the order of the help, grouped by purpose. Only the one called is loaded, or all of them for the help. */
import { Command } from 'commander'

type Define = (program: Command) => void

const GROUPS: Record<string, Record<string, () => Promise<Define>>> = {
  Run: {
    run: async () => (await import('./run.ts')).defineRun,
    crawl: async () => (await import('./crawl.ts')).defineCrawl,
    start: async () => (await import('./start.ts')).defineStart,
    pause: async () => (await import('./steer.ts')).definePause,
    resume: async () => (await import('./steer.ts')).defineResume,
    cancel: async () => (await import('./steer.ts')).defineCancel,
    retry: async () => (await import('./retry.ts')).defineRetry,
    demo: async () => (await import('./demo.ts')).defineDemo,
  },
  Inspect: {
    ps: async () => (await import('./ps.ts')).definePs,
    watch: async () => (await import('./watch.ts')).defineWatch,
    logs: async () => (await import('./logs.ts')).defineLogs,
    stats: async () => (await import('./stats.ts')).defineStats,
    dlq: async () => (await import('./dlq.ts')).defineDlq,
    export: async () => (await import('./export.ts')).defineExport,
    files: async () => (await import('./files.ts')).defineFiles,
    diff: async () => (await import('./diff.ts')).defineDiff,
    history: async () => (await import('./history.ts')).defineHistory,
    quality: async () => (await import('./quality.ts')).defineQuality,
  },
  'Write scrapers': {
    init: async () => (await import('./init.ts')).defineInit,
    new: async () => (await import('./new.ts')).defineNew,
    list: async () => (await import('./list.ts')).defineList,
    try: async () => (await import('./try.ts')).defineTry,
    shell: async () => (await import('./shell.ts')).defineShell,
    fetch: async () => (await import('./fetch.ts')).defineFetch,
    map: async () => (await import('./map.ts')).defineMap,
    robots: async () => (await import('./robots.ts')).defineRobots,
    test: async () => (await import('./test.ts')).defineTest,
    check: async () => (await import('./check.ts')).defineCheck,
  },
  Fleet: {
    worker: async () => (await import('./worker.ts')).defineWorker,
    produce: async () => (await import('./produce.ts')).defineProduce,
    autoscale: async () => (await import('./autoscale.ts')).defineAutoscale,
    submit: async () => (await import('./submit.ts')).defineSubmit,
    collect: async () => (await import('./collect.ts')).defineCollect,
  },
  Server: {
    serve: async () => (await import('./serve.ts')).defineServe,
    schedule: async () => (await import('./schedule.ts')).defineSchedule,
    webhook: async () => (await import('./webhook.ts')).defineWebhook,
    key: async () => (await import('./key.ts')).defineKey,
    audit: async () => (await import('./audit.ts')).defineAudit,
  },
  Machine: {
    doctor: async () => (await import('./doctor.ts')).defineDoctor,
    explain: async () => (await import('./explain-command.ts')).defineExplain,
    config: async () => (await import('./config.ts')).defineConfig,
    bench: async () => (await import('./bench.ts')).defineBench,
    completion: async () => (await import('./completion.ts')).defineCompletion,
  },
}

export async function defineCommands(program: Command, word: string | undefined): Promise<void> {
  const all = Object.entries(GROUPS).flatMap(([group, commands]) =>
    Object.entries(commands).map(([name, load]) => ({ name, group, load })),
  )
  const called = all.filter(({ name }) => name === word)
  // Completion is generated from the whole command tree.
  for (const { group, load } of called.length === 0 || word === 'completion' ? all : called) {
    const known = new Set(program.commands)
    ;(await load())(program)
    for (const command of program.commands) if (!known.has(command)) command.helpGroup(`${group}:`)
  }
}

/** The last command of the last group. */
export function helpCommand(): Command {
  return new Command('help')
    .argument('[command]')
    .description('print the help of a command')
    .helpOption(false)
    .helpGroup(`${Object.keys(GROUPS).at(-1)}:`)
}

/** `run [scraper]`: the command's own help mentions its options. */
export const subcommandTerm = (command: Command): string =>
  [command.name(), ...command.registeredArguments.map(argumentTerm)].join(' ')

function argumentTerm(argument: Command['registeredArguments'][number]): string {
  const word = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${word}>` : `[${word}]`
}
