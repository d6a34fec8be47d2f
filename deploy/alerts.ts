/** Words for tests of the alert rules: what they name, and the same rules with short times. */
import { readFileSync } from 'node:fs'

export const RULES = new URL('prometheus/rules/sluice.yml', import.meta.url).pathname

/** Every metric in an expression: ours, those of a process, Prometheus' own. Names of labels and functions are not among them. */
export function metricsIn(expression: string): string[] {
  const names = expression.match(/\b(?:sluice|scraper|process|nodejs)(?:_[a-z0-9]+)+\b/g) ?? []
  return [...new Set(names.map((name) => name.replace(/_bucket$/, '')))]
}

/** The rules with windows of seconds, so that a test sees in seconds what takes an operator minutes. Thresholds stay. */
export function hurriedRules(): string {
  return readFileSync(RULES, 'utf8')
    .replace(/\[\d+[mhd]\]/g, '[8s]')
    .replace(/ offset \d+[mhd]/g, ' offset 1s')
    .replace(/for: \d+[mhd]/g, 'for: 4s')
}

export function alertNames(): string[] {
  return [...readFileSync(RULES, 'utf8').matchAll(/- alert: (\w+)/g)].map((match) => match[1]!)
}
