/**
 * Room for large bodies: bounds the bytes of large pages that a client holds at once, from the wire until their handlers have read
 * them. A body that finds no room is not read on until there is some; its server waits, and its deadline stands still. Small
 * bodies need none, so an ordinary crawl never waits here.
 *
 * A body asks once, for as much as it may need. Nothing that has room ever waits for more, so bodies cannot block each other.
 */

/** Up to here a body needs no room: concurrency bounds those. */
export const SMALL_BODY_BYTES_MAX = 1_048_576
/** Two bodies of the default limit. With 12 gzip bombs, or 24 pages of 10 MB, a run stays below 250 MB (bench/hostile.ts). */
const ROOM_BYTES = 33_554_432

export class BodyRoom {
  readonly #bytesMax: number
  #usedBytes = 0
  /** First come, first served: a large body must not starve behind smaller ones. */
  readonly #waiting = new Set<BodyPlace>()

  constructor(bytesMax = ROOM_BYTES) {
    this.#bytesMax = bytesMax
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  newPlace(): BodyPlace {
    return new BodyPlace(this)
  }

  /** A body larger than all the room gets it to itself. */
  enter(place: BodyPlace, bytes: number): Promise<void> | undefined {
    place.bytes = Math.min(bytes, this.#bytesMax)
    if (this.#waiting.size === 0 && this.#hasRoomFor(place)) {
      this.#usedBytes += place.bytes
      return undefined
    }
    this.#waiting.add(place)
    return new Promise((resolve) => {
      place.onEnter = resolve
    })
  }

  leave(place: BodyPlace, bytes: number): void {
    if (!this.#waiting.delete(place)) this.#usedBytes -= bytes
    for (const next of this.#waiting) {
      if (!this.#hasRoomFor(next)) break
      this.#waiting.delete(next)
      this.#usedBytes += next.bytes
      next.onEnter?.()
    }
  }

  #hasRoomFor({ bytes }: BodyPlace): boolean {
    return this.#usedBytes + bytes <= this.#bytesMax
  }
}

/** The room of one exchange and of the page it becomes; given back when disposed of. */
export class BodyPlace implements Disposable {
  readonly #room: BodyRoom
  #hasAsked = false
  /** For the room: what this place takes or waits for, and how to tell it that it has it. */
  bytes = 0
  onEnter: (() => void) | undefined

  constructor(room: BodyRoom) {
    this.#room = room
  }

  /** Asks for room; a promise where it has to be waited for. Only the first call counts. */
  take(bytes: number): Promise<void> | undefined {
    if (this.#hasAsked) return undefined
    this.#hasAsked = true
    return this.#room.enter(this, bytes)
  }

  /** The body turned out to be this large. */
  shrinkTo(bytes: number): void {
    const kept = bytes <= SMALL_BODY_BYTES_MAX ? 0 : bytes
    if (kept >= this.bytes) return
    const surplus = this.bytes - kept
    this.bytes = kept
    this.#room.leave(this, surplus)
  }

  [Symbol.dispose](): void {
    this.#hasAsked = true
    this.shrinkTo(0)
  }
}
