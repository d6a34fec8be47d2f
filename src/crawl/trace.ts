/**
 * The position of an attempt in its trace: IDs only, so that it needs no package and travels with the task.
 *
 *   list page ─▶ new trace ─▶ its page's span ─▶ `trace` of every task it finds ─▶ their pages' spans
 *       └─ the next list page (same route): a new trace, with a link back. Otherwise all pages of a run would be one trace.
 */
import type { Settled } from './settle.ts'

/** `00-<trace>-<span>-<flags>`, as in the W3C recommendation. */
const TRACEPARENT = /^00-([0-9a-f]{32})-[0-9a-f]{16}-0([01])$/

/** Precedes the traceparent of a page that is to be linked to, not continued. */
const LINK = '~'

interface TraceOptions {
  startedAtMs: number
  /** Share of new traces that are kept. */
  ratio: number
  random: () => number
}

/** Gives the attempt its position in the trace, and its tasks the reference to it. */
export function tracePage({ outcome, event }: Settled, { startedAtMs, ratio, random }: TraceOptions): void {
  if (event === undefined) return
  const { task } = outcome.lease
  const found = task.trace === undefined ? null : TRACEPARENT.exec(task.trace)
  const isKept = found === null ? random() < ratio : found[2] === '1'
  const traceId = found?.[1] ?? randomHex(32, random)
  const own = `00-${traceId}-${randomHex(16, random)}-0${isKept ? 1 : 0}`
  // Even if it is not kept: tasks found there must not start a trace in the middle.
  if (outcome.kind === 'done')
    for (const next of outcome.tasks ?? []) next.trace = next.route === task.route ? LINK + own : own
  if (!isKept) return
  event.trace = {
    own,
    ...(found === null ? {} : { parent: task.trace! }),
    ...linkOf(task.trace),
    startedAtMs,
    itemKeys: outcome.kind === 'done' ? (outcome.items ?? []).map(({ key }) => key) : [],
  }
}

/** A task may come from elsewhere, with any text here. */
function linkOf(trace: string | undefined): { link?: string } {
  const link = trace?.startsWith(LINK) ? trace.slice(LINK.length) : ''
  return TRACEPARENT.test(link) ? { link } : {}
}

const WORD_DIGITS = 8

function randomHex(digits: number, random: () => number): string {
  let hex = ''
  while (hex.length < digits)
    hex += Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(WORD_DIGITS, '0')
  return hex
}
