/**
 * Scales workers that something else manages: runs a command, or only prints it, whenever the target number of workers changes.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Staffing } from '../../fleet/autoscale.ts'
import type { Crew } from '../../fleet/autoscale-loop.ts'
import type { Store } from '../../store/contract.ts'

interface CommandCrewOptions {
  /** `{n}` stands for the number. */
  template: string
  /** Called instead of running the command. */
  print?: (command: string) => void
  store: Pick<Store, 'listWorkers'>
  scraper: string
  /** Count only the workers of this run. */
  runId: string | undefined
  onTrouble: (message: string) => void
}

const COMMAND_MS_MAX = 300_000

export class CommandCrew implements Crew {
  readonly #options: CommandCrewOptions
  /** The last number requested successfully. */
  #asked: number | undefined
  #living: { runId: string }[] = []

  constructor(options: CommandCrewOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#living.length
  }

  countOf(runId: string): number {
    return this.#living.filter((worker) => worker.runId === runId).length
  }

  async scale({ target }: Pick<Staffing, 'target'>): Promise<string[]> {
    const { template, print, store, scraper, runId, onTrouble } = this.#options
    const living = await store.listWorkers({ isAlive: true, runId })
    this.#living = living.filter((worker) => worker.scraper === scraper)
    if (target === this.#asked) return []
    const command = template.replaceAll('{n}', String(target))
    if (print !== undefined) print(command)
    else {
      const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'inherit', 'inherit'], timeout: COMMAND_MS_MAX })
      const [code, signal] = await once(child, 'close')
      if (code !== 0) {
        onTrouble(`the command ended with ${signal ?? `exit code ${code}`} and is tried again: ${command}`)
        return []
      }
    }
    this.#asked = target
    return [command]
  }

  check(): void {}

  /** The workers existed before the autoscaler and may outlive it. */
  async dismiss(): Promise<void> {}
}
