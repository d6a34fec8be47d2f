/**
 * Where errors happened: the queue only counts them. The process that saw one knows, and if it was killed, a dead letter does.
 */

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
