/** Errors are counted in the queue, but only the process that saw one knows where it happened. If that process was killed, a dead letter has it. */

import { redactText } from '../../core/redact-text.ts'
import type { RunRecord } from '../../core/run.ts'
import type { Frontier } from '../../frontier/contract.ts'

export async function findExamples(record: RunRecord, { dead }: Pick<Frontier, 'dead'>): Promise<void> {
  const missing = record.errors.filter(({ example }) => example === '')
  if (missing.length === 0) return
  const groups = await dead.groups()
  for (const error of missing) {
    const example = groups.find(({ code }) => code === error.code)?.exampleUrl
    if (example !== undefined) error.example = redactText(example)
  }
}
