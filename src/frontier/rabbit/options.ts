/** Options for delivering ready tasks through the broker. */
import type { MessageTtl } from './feeder.ts'
import type { ExpiredPolicy } from './foreign-messages.ts'
import type { AckMode } from './intake.ts'

export interface TransportOptions {
  /** Messages a worker may have unacknowledged. Default: grows with the size of its claims. */
  prefetch?: number
  /** How long a claim without enough tasks waits for those that are known to be on their way. Default 25. */
  waitMs?: number
  /** How long a claim with enough tasks waits for all others in the broker, to choose among all. Default 0: not at all. */
  chooseMs?: number
  /** `manual` (default): acknowledged after the commit. `auto`: on delivery; a killed worker's tasks come back a minute later. */
  ack?: AckMode | Readonly<Record<string, AckMode>>
  /** What happens to a task whose message expired. `requeue` (default): it waits again. `dead`: a dead letter. */
  expired?: ExpiredPolicy
  /** Time to live of a task's message; the smaller of this and the queue's applies. */
  messageTtlMs?: MessageTtl
  /** After this long, a task that should be in the broker but is in no queue is published again. Default 60,000. */
  lostMs?: number
  /** A process that claims nothing for this long gives back what was delivered to it. Default 5000. */
  idleMs?: number
}
