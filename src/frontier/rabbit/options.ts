/** What can be set about the way of ready tasks over the broker. */
import type { MessageTtl } from './feeder.ts'
import type { ExpiredPolicy } from './foreign-messages.ts'
import type { AckMode } from './intake.ts'

export interface TransportOptions {
  /** Messages a worker may have unacknowledged. Default: grows with what it claims at once. */
  prefetch?: number
  /** How long a claim that lacks tasks waits for those the ledger knows on their way. Default 25. */
  waitMs?: number
  /** How long a claim that has enough waits for the rest of the belt, to choose among all of it. Default 0: not at all. */
  chooseMs?: number
  /** `manual` (default): acknowledged after the commit. `auto`: when delivered; what a killed worker had comes back a minute later. */
  ack?: AckMode | Readonly<Record<string, AckMode>>
  /** What becomes of a task whose message expired. `requeue` (default): it waits again. `dead`: a dead letter. */
  expired?: ExpiredPolicy
  /** Time to live of a task's message; the smaller of this and the queue's counts. */
  messageTtlMs?: MessageTtl
  /** After this, a task that is on the belt and in no queue is taken for lost and published again. Default 60,000. */
  lostMs?: number
  /** A process that claims nothing for so long gives back what was delivered to it. Default 5000. */
  idleMs?: number
}
