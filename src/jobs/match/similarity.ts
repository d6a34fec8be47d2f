/** How much of one description is contained in another. Boards shorten descriptions and reorder their parts. */

const WORDS_MAX = 3000
const SHINGLE_WORDS = 3
/** Fewer words prove nothing: "Apply now!" is everywhere. */
const WORDS_MIN = 8

/** A description, prepared once and compared often. */
export interface Fingerprint {
  words: number
  shingles: ReadonlySet<string>
  /** Words by sentence. */
  sentences: ReadonlyMap<string, number>
}

export function fingerprint(text: string | null): Fingerprint {
  const shingles = new Set<string>()
  const sentences = new Map<string, number>()
  const all: string[] = []
  for (const sentence of (text ?? '')
    .slice(0, 65_536)
    .toLowerCase()
    .split(/[.!?;\n•]+/)) {
    const words = sentence.match(/[\p{L}\p{N}]+/gu) ?? []
    if (words.length === 0) continue
    sentences.set(words.join(' '), words.length)
    all.push(...words)
    if (all.length >= WORDS_MAX) break
  }
  for (let i = 0; i + SHINGLE_WORDS <= all.length; i++) shingles.add(all.slice(i, i + SHINGLE_WORDS).join(' '))
  return { words: all.length, shingles, sentences }
}

/** 0 … 1: the share of the shorter text that is in the longer one. Undefined if one of them is too short. */
export function similarity(a: Fingerprint, b: Fingerprint): number | undefined {
  if (Math.min(a.words, b.words) < WORDS_MIN) return undefined
  const [short, long] = a.words <= b.words ? [a, b] : [b, a]
  let shared = 0
  for (const shingle of short.shingles) if (long.shingles.has(shingle)) shared++
  const byShingle = short.shingles.size === 0 ? 0 : shared / short.shingles.size
  let inSentences = 0
  let total = 0
  for (const [sentence, words] of short.sentences) {
    total += words
    if (long.sentences.has(sentence)) inSentences += words
  }
  return Math.max(byShingle, total === 0 ? 0 : inSentences / total)
}
