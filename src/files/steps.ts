/** The available steps, by name. Each loads its library with the first file it handles. */
import { ScrapeError } from '../core/errors.ts'
import type { FileStep } from './contract.ts'
import { pdfText } from './pdf-text.ts'
import { thumbnail } from './thumbnail.ts'

const STEPS = { 'pdf-text': pdfText, thumbnail }

export type StepName = keyof typeof STEPS
const STEP_NAMES = Object.keys(STEPS) as StepName[]

export function openSteps(names: readonly string[]): FileStep[] {
  return names.map((name) => {
    if (Object.hasOwn(STEPS, name)) return STEPS[name as StepName]()
    throw new ScrapeError('E_OPTION', `no file step ${JSON.stringify(name)}; there are ${STEP_NAMES.join(', ')}`)
  })
}
