/** Pay in JobPosting markup: every way `baseSalary` is written in practice. */

import { field, isNode, listOf, type MarkupNode, textIn, textOf } from './markup-node.ts'
import type { RawSalary } from './posting.ts'

/** `baseSalary`, else `estimatedSalary`; undefined if neither contains an amount. */
export function salaryOf(posting: MarkupNode): RawSalary | string | undefined {
  const currency = textIn(posting, 'salaryCurrency')
  for (const name of ['baseSalary', 'estimatedSalary']) {
    for (const value of listOf(field(posting, name))) {
      const salary = readSalary(value, currency)
      if (typeof salary === 'object' && name === 'estimatedSalary') return { ...salary, isEstimate: true }
      if (salary !== undefined) return salary
    }
  }
  return undefined
}

function readSalary(value: unknown, currency: string | undefined): RawSalary | string | undefined {
  if (!isNode(value)) return fromText(textOf(value), currency, undefined)
  const inner = listOf(field(value, 'value'))[0]
  const own = textIn(value, 'currency') ?? textIn(value, 'priceCurrency') ?? currency
  const outerUnit = unitOf(value)
  if (isNode(inner)) {
    const unit = unitOf(inner) ?? outerUnit // the inner unit describes the numbers, the outer one is often a default
    const innerCurrency = textIn(inner, 'currency') ?? own
    return bounds(inner, innerCurrency, unit) ?? fromText(textIn(inner, 'value'), innerCurrency, unit)
  }
  return bounds(value, own, outerUnit) ?? fromText(textOf(inner) ?? textIn(value, 'price'), own, outerUnit)
}

const unitOf = (node: MarkupNode) => textIn(node, 'unitText') ?? textIn(node, 'unitCode') ?? textIn(node, 'duration')

function bounds(node: MarkupNode, currency: string | undefined, interval: string | undefined): RawSalary | undefined {
  const min = textIn(node, 'minValue') ?? textIn(node, 'minPrice')
  const max = textIn(node, 'maxValue') ?? textIn(node, 'maxPrice')
  if (isNothing(min) && isNothing(max)) return undefined
  return { min: isNothing(min) ? null : min, max: isNothing(max) ? null : max, currency, interval }
}

/** Some sites fill in zeros. */
const isNothing = (text: string | undefined) => text === undefined || Number(text) === 0

const NUMBER = /^\d[\d.,' \u00a0\u202f]{0,30}$/
const RANGE = /^(\d[\d.,' \u00a0\u202f]{0,30}?)\s?(?:-|–|—|to|bis)\s?(\d[\d.,' \u00a0\u202f]{0,30})$/i

/** A number, a range of numbers, or other text, which is left to the salary parser. */
function fromText(
  text: string | undefined,
  currency: string | undefined,
  interval: string | undefined,
): RawSalary | string | undefined {
  if (text === undefined || isNothing(text)) return undefined
  if (NUMBER.test(text)) return { min: text, max: text, currency, interval }
  const range = RANGE.exec(text)
  if (range !== null) return { min: range[1], max: range[2], currency, interval, raw: text }
  return /\d/.test(text)
    ? [text, currency, interval && `per ${interval.toLowerCase()}`].filter(Boolean).join(' ')
    : undefined
}
