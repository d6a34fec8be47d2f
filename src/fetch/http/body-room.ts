/**
 * Room for large bodies: limits the bytes of large pages that a client holds at once, from the wire until handlers have read
 * them. If there is no room for a body, reading it stops until there is; its server waits, and its deadline is suspended. Small
 * bodies need no room, so an ordinary crawl never waits here.
 *
 * A body asks once, for as much as it may need. A body that has room never waits for more, so bodies cannot deadlock.
 */

/** Bodies up to this size need no room: concurrency limits them. */
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

  /** A body larger than the whole room gets all of it. */
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

/** The room held by one exchange and the page it becomes; released on dispose. */
export class BodyPlace implements Disposable {
  readonly #room: BodyRoom
  #hasAsked = false
  /** Used by the room: the bytes this place holds or waits for, and the callback for when it gets them. */
  bytes = 0
  onEnter: (() => void) | undefined

  constructor(room: BodyRoom) {
    this.#room = room
  }

  /** Asks for room; returns a promise if it has to wait. Only the first call counts. */
  take(bytes: number): Promise<void> | undefined {
    if (this.#hasAsked) return undefined
    this.#hasAsked = true
    return this.#room.enter(this, bytes)
  }

  /** Called when the actual size of the body is known. */
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
