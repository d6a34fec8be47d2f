/** Detects fields that were filled yesterday and are not today: the site changed and the parser did not. */
import { QUALITY_FIELDS, type QualityField, type QualityReport } from './quality.ts'

export interface DriftAlarm {
  field: QualityField
  /** Completeness today, and the median of the previous days. */
  today: number
  median: number
  reason: 'sigma' | 'points'
}

type Measured = Pick<QualityReport, 'items' | 'completeness'>

const DAYS = 7
/** With fewer previous days, nothing is compared. */
export const DAYS_MIN = 3
/** With fewer items, a share means nothing. */
export const ITEMS_MIN = 20
const POINTS_MAX = 0.2
const SIGMAS = 3
/** Seven equal days have no spread, but the eighth may still differ a little. */
const SIGMA_MIN = 0.02

/** The previous days (oldest first) that today is compared with. */
export const comparable = (history: readonly Measured[]) =>
  history.filter(({ items }) => items >= ITEMS_MIN).slice(-DAYS)

/** The fields that fell more than 3 sigma or 20 points below the median of the previous seven days (oldest first). */
export function driftAlarms(today: Measured, history: readonly Measured[]): DriftAlarm[] {
  const days = comparable(history)
  if (today.items < ITEMS_MIN || days.length < DAYS_MIN) return []
  return QUALITY_FIELDS.flatMap((field) => {
    const values = days.map(({ completeness }) => completeness[field])
    const median = medianOf(values)
    const drop = median - today.completeness[field]
    const isFar = drop > SIGMAS * Math.max(SIGMA_MIN, sigmaOf(values))
    if (drop <= POINTS_MAX && !isFar) return []
    return [
      { field, today: today.completeness[field], median, reason: drop > POINTS_MAX ? 'points' : 'sigma' } as const,
    ]
  })
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

function sigmaOf(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)
}
