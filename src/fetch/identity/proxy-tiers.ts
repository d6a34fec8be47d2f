/**
 * Which tier of proxies a site needs: cheap ones first, better ones where those are blocked, and back down when the site calms
 * down.
 *
 * Every error adds 10 to the weight of its tier, every request takes 1 off the others, and the site moves to the neighbouring
 * tier with the lower weight.
 */
import { LRUCache } from 'lru-cache'

const ERROR_WEIGHT = 10
/** Sites whose tier is remembered; a forgotten one starts with the cheap proxies again. */
const HOSTS_MAX = 10_000

interface HostTiers {
  tier: number
  readonly weights: number[]
}

export class ProxyTiers {
  readonly #count: number
  readonly #hosts = new LRUCache<string, HostTiers>({ max: HOSTS_MAX })

  constructor(count: number) {
    this.#count = count
  }

  /** The tier for the next request to `host`. */
  next(host: string): number {
    if (this.#count === 1) return 0
    const state = this.#hosts.get(host)
    if (state === undefined) return 0
    const { weights, tier } = state
    for (let i = 0; i < weights.length; i++) if (i !== tier && weights[i]! > 0) weights[i]!--
    const below = weights[tier - 1] ?? Number.POSITIVE_INFINITY
    const above = weights[tier + 1] ?? Number.POSITIVE_INFINITY
    if (weights[tier]! > Math.min(below, above)) state.tier += below <= above ? -1 : 1
    else if (weights[tier] === below) state.tier--
    return state.tier
  }

  onError(host: string, tier: number): void {
    if (this.#count === 1) return
    let state = this.#hosts.get(host)
    if (state === undefined) {
      state = { tier: 0, weights: new Array<number>(this.#count).fill(0) }
      this.#hosts.set(host, state)
    }
    state.weights[tier]! += ERROR_WEIGHT
  }
}
