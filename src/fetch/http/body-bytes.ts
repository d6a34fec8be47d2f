/**
 * Collects the bytes of one body. A small body is kept in the chunks it arrived in, most often one. A large one is copied into
 * one buffer right away: chunks that wait for the end are old by then, and 15 MB of them stay until the next full garbage
 * collection.
 */
import { SMALL_BODY_BYTES_MAX } from './body-room.ts'

const NOTHING = Buffer.alloc(0)

export class BodyBytes {
  length = 0
  #piece: Buffer | undefined
  #pieces: Buffer[] | undefined
  #whole: Buffer | undefined

  /** `bytesExpected`: the length of the body if the server announced it, otherwise 0. */
  add(piece: Buffer, bytesExpected: number): void {
    const from = this.length
    this.length += piece.length
    if (this.length > SMALL_BODY_BYTES_MAX) {
      if (this.#whole === undefined || this.length > this.#whole.length) this.#grow(from, bytesExpected)
      piece.copy(this.#whole!, from)
    } else if (this.#piece === undefined) this.#piece = piece
    else if (this.#pieces === undefined) this.#pieces = [this.#piece, piece]
    else this.#pieces.push(piece)
  }

  /** Everything received so far. Call it once: a body that was taken must not be held here (`Page.release`). */
  take(): Buffer {
    const body = this.#whole?.subarray(0, this.length) ?? this.#together()
    this.#whole = undefined
    this.#drop()
    return body
  }

  #together(): Buffer {
    return this.#pieces === undefined ? (this.#piece ?? NOTHING) : Buffer.concat(this.#pieces)
  }

  #drop(): void {
    this.#piece = undefined
    this.#pieces = undefined
  }

  #grow(bytes: number, bytesExpected: number): void {
    const old = this.#whole
    const whole = Buffer.allocUnsafeSlow(
      Math.max(this.length, bytesExpected, 2 * (old?.length ?? SMALL_BODY_BYTES_MAX)),
    )
    if (old === undefined) {
      let at = 0
      for (const piece of this.#pieces ?? (this.#piece === undefined ? [] : [this.#piece])) at += piece.copy(whole, at)
      this.#drop()
    } else {
      old.copy(whole, 0, 0, bytes)
      ;(old.buffer as ArrayBuffer).transfer(0) // now, without waiting for the garbage collector
    }
    this.#whole = whole
  }
}
