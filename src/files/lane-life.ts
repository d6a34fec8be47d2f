/**
 * Signs of life of the machine that a lane of kept files is pinned to. Compared for equality only, since clocks differ between
 * machines.
 */
import { hostname } from 'node:os'
import { FILES_LANE } from '../core/task.ts'
import type { Frontier } from '../frontier/contract.ts'

type Meta = Pick<Frontier, 'getMeta' | 'setMeta'>

const SIGN_MS = 20_000

/** Used on the machine that has the files. */
export class LaneLife {
  readonly #frontier: Meta
  #signedAtMs = Number.NEGATIVE_INFINITY

  constructor(frontier: Meta) {
    this.#frontier = frontier
  }

  /** May be called often. */
  async sign(lane: string): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#signedAtMs < SIGN_MS) return
    this.#signedAtMs = nowMs
    await this.#frontier.setMeta(nameOf(lane), `${crypto.randomUUID()} ${hostname()}`)
  }
}

/** For all other machines: the last sign, which changes each time, and who gave it. Undefined: there was none. */
export async function signOf(frontier: Meta, lane: string): Promise<string | undefined> {
  return await frontier.getMeta(nameOf(lane))
}

export function hostOfSign(sign: string | undefined): string {
  return sign?.slice(sign.indexOf(' ') + 1) ?? 'a host that is not known'
}

export function spoolOf(lane: string): string {
  return lane.slice(FILES_LANE.length + 1)
}

function nameOf(lane: string): string {
  return `life of ${lane}`
}
