/** The run a command refers to, found by its name and flags, and follow-up commands that the user can type next. */
import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { type ConfigValues, flagName, type OptionName } from '../config/option-table.ts'
import { withoutPassword } from '../runs/run-identity.ts'
import type { OpenRun } from '../runs/run-view.ts'
import { addOptions, configOf } from './flags.ts'
import { shellWord } from './output.ts'

/** Flags that say where runs are stored. */
const PLACES: readonly OptionName[] = ['out', 'frontier', 'store', 'redis']

export const RUN_HELP = `
Name a run by its id, its scraper (its latest run) or its path; without a name, the latest run is used. Runs of a fleet need
--frontier postgres://…, redis://… or amqp://… (SLUICE_FRONTIER), and --store (SLUICE_STORE) if they are not stored in the
database of the queue.`

export interface PlaceFlags {
  out?: string | undefined
  frontier?: string | undefined
  store?: string | undefined
  redis?: string | undefined
}

/** Arguments of a command → the command line to type, which finds the same run from this folder. */
export type CommandOf = (...words: string[]) => string

export interface RunPlace {
  run: OpenRun
  places: ConfigValues
  commandOf: CommandOf
  /** The command line that resumes the run. */
  resume(): string
}

export function addPlaces(command: Command): Command {
  return addOptions(command, PLACES)
}

export async function withRun<T>(
  word: string | undefined,
  flags: PlaceFlags,
  use: (place: RunPlace) => Promise<T>,
): Promise<T> {
  const [{ openRun }, { outFlag }] = await Promise.all([import('../runs/open-run.ts'), import('../runs/run-view.ts')])
  const { places, placeFlags, lineOf } = await placesOf(flags)
  await using run = await openRun(word, places)
  return await use({
    run,
    places,
    commandOf: (...words) => lineOf(...words, ...placeFlags, ...outFlag(places.out)),
    resume: () => lineOf(...run.resumeCommand(), ...placeFlags),
  })
}

/** A frontier given as a flag is repeated in the next command, but never with its password. */
export async function placesOf(flags: PlaceFlags) {
  const { self } = await import('../observe/terminal.ts')
  const { values, origins } = await configOf(flags as Record<string, unknown>)
  const placeFlags = (['frontier', 'store', 'redis'] as const).flatMap((name) =>
    origins[name].startsWith('flag') ? [`--${name}`, withoutPassword(values[name] ?? '')] : [],
  )
  const lineOf: CommandOf = (...words) => [self(), ...words].map(shellWord).join(' ')
  return { places: values, placeFlags, lineOf }
}

/** Places and boards given as flags, which a worker's shell does not know. Command lines must not contain passwords. */
export function workerPlaces({ values, origins }: Config): string[] {
  const places = (['frontier', 'store', 'redis'] as const).flatMap((name) => {
    const value = values[name]
    return value !== undefined && origins[name].startsWith('flag ') ? [flagName(name), withoutPassword(value)] : []
  })
  const boards = origins.boards.startsWith('flag ') ? values.boards.flatMap((name) => ['--boards', name]) : []
  return [...places, ...boards]
}
