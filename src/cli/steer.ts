/** `sluice pause`, `resume` and `cancel`: controls a run from any machine that can reach it. */

import type { Command } from 'commander'
import { isComplete } from '../core/run.ts'
import type { Steered } from '../runs/steer-run.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, RUN_HELP, type RunPlace, withRun } from './run-place.ts'

interface SteerFlags extends ReadFlags, PlaceFlags {
  reason?: string
}

type Verb = 'pause' | 'resume' | 'cancel'

export function definePause(program: Command): void {
  const command = define(program, 'pause', 'pause a run: no more pages are fetched until it is resumed', [
    'sluice pause books',
    'sluice pause 20261115_113501_x7k2 --reason "the site asked us to"',
  ])
  command.option('--reason <TEXT>', 'shown with the run')
}

export function defineResume(program: Command): void {
  define(program, 'resume', 'resume a paused run', ['sluice resume books'])
}

export function defineCancel(program: Command): void {
  const command = define(program, 'cancel', 'stop a run: pages in flight are finished, the rest stays in the queue', [
    'sluice cancel books',
    'sluice cancel 20261115_113501_x7k2 --json',
  ])
  command.option('--reason <TEXT>', 'shown with the run')
}

function define(program: Command, verb: Verb, what: string, examples: string[]): Command {
  const command = program
    .command(`${verb} <run>`)
    .description(what)
    .addHelpText('after', `${RUN_HELP}\n\nExamples:\n  ${examples.join('\n  ')}`)
    .action(async (run: string, flags: SteerFlags) => {
      process.exitCode = await steer(verb, run, flags)
    })
  addReadFlags(command, 'the new state of the run')
  return addPlaces(command)
}

async function steer(verb: Verb, word: string, flags: SteerFlags): Promise<number> {
  const { pauseRun, resumeRun, cancelRun } = await import('../runs/steer-run.ts')
  const acts: Record<Verb, (run: RunPlace['run']) => Promise<Steered>> = {
    pause: (run) => pauseRun(run, flags.reason),
    resume: resumeRun,
    cancel: (run) => cancelRun(run, flags.reason),
  }
  return await withRun(word, flags, async (place) => {
    const { run } = place
    const { isChanged, reason } = await acts[verb](run)
    const next = nextOf(verb, place)
    if (flags.json)
      printJson({
        run: run.record.id,
        scraper: run.record.scraper,
        action: verb,
        isChanged,
        isAlive: run.isAlive,
        reason,
        next: next ?? null,
      })
    else if (!flags.quiet) print(await steeredText(verb, place, { isChanged, reason }, next))
    return 0
  })
}

/** The command that gets the run going again; undefined if there is none. */
function nextOf(verb: Verb, { run, commandOf, resume }: RunPlace): string | undefined {
  if (isComplete(run.record)) return undefined
  switch (verb) {
    case 'pause':
      return commandOf('resume', run.record.id)
    case 'resume':
      return run.isAlive ? undefined : resume()
    case 'cancel':
      return resume()
    default:
      return verb satisfies never
  }
}

async function steeredText(
  verb: Verb,
  { run }: RunPlace,
  { isChanged, reason }: Steered,
  next: string | undefined,
): Promise<string> {
  const { paintFor, printable } = await import('./style.ts')
  const paint = paintFor(process.stdout)
  const { id, scraper, state } = run.record
  const name = paint('bold', `${scraper} ${id}`)
  if (isComplete(run.record) && !isChanged) return `${name} is ${state}: nothing to ${verb}`
  const idle = run.isAlive ? '' : '; no worker is active on it'
  const said = {
    pause: isChanged ? `paused: pages in flight are finished first${idle}` : `was already paused: ${reason}`,
    resume: isChanged ? `resumed${idle}` : `was not paused${idle}`,
    cancel: isChanged
      ? `cancelled${run.isAlive ? ': its workers hand back what they hold and end' : idle}`
      : `had ended already: ${reason ?? state}`,
  }[verb]
  const goOn = next === undefined ? '' : `\n  resume: ${paint('cyan', next)}`
  return `${name} ${printable(said)}${goOn}`
}
