/** What pseudo-classes mean: formulas, languages, and those that stand for other selectors. */

/** Pseudo-classes that are short for `:nth-…(1)`. */
export const SIMPLE_NTH: ReadonlyMap<string, readonly string[]> = new Map([
  ['first-child', ['nth-child']],
  ['last-child', ['nth-last-child']],
  ['only-child', ['nth-child', 'nth-last-child']],
  ['first-of-type', ['nth-of-type']],
  ['last-of-type', ['nth-last-of-type']],
  ['only-of-type', ['nth-of-type', 'nth-last-of-type']],
])

const types = (names: string): string =>
  names
    .split(' ')
    .map((name) => `[type=${name}]`)
    .join()

const NO_TEXT = types('button checkbox color file hidden image radio range reset submit')
const CONTROL = ':is(button, input, select, textarea, fieldset)'
const EDITABLE = ':is([contenteditable=""], [contenteditable=true i], [contenteditable=plaintext-only i])'

/** The HTML standard's definitions, of HTML elements, as far as the page's text decides. */
export const ALIASES: ReadonlyMap<string, string> = new Map([
  [
    'checked',
    `input:is(${types('radio checkbox')})[checked], option[selected],
    select:not([multiple]):not(:has(option[selected])) > option:first-of-type`,
  ],
  [
    'disabled',
    `${CONTROL}[disabled], :is(optgroup, option)[disabled], optgroup[disabled] option,
    fieldset[disabled] > ${CONTROL}, fieldset[disabled] > :not(legend:first-of-type) ${CONTROL}`,
  ],
  ['enabled', ':is(button, input, select, textarea, fieldset, optgroup, option):not(:disabled)'],
  [
    'required',
    `:is(select, textarea)[required], input[required]:not(${types('hidden range color submit image reset button')})`,
  ],
  ['optional', ':is(input, select, textarea):not(:required)'],
  [
    'read-write',
    `:is(input:not(${NO_TEXT}), textarea):not([readonly], :disabled), :is(${EDITABLE}, ${EDITABLE} *):not(input, textarea)`,
  ],
  ['read-only', ':not(:read-write)'],
])

const LINK = 'a[*|href], area[href]'

/** These also of SVG elements. */
export const LINK_ALIASES: ReadonlyMap<string, string> = new Map([
  ['any-link', LINK],
  ['link', LINK],
])

/** Cheerio's own, from jQuery. */
export const CHEERIO_PSEUDOS: ReadonlySet<string> = new Set(
  (
    'first last eq gt lt nth even odd contains icontains selected checkbox file password radio reset image submit parent header ' +
    'button input text'
  ).split(' '),
)

/** These depend on what happens in a browser. */
export const LIVE_PSEUDOS: ReadonlySet<string> = new Set(
  (
    'active autofill blank buffering current defined focus focus-visible focus-within fullscreen future hover in-range indeterminate ' +
    'invalid local-link modal muted open out-of-range past paused picture-in-picture placeholder-shown playing popover-open seeking ' +
    'stalled state target target-within user-invalid user-valid valid visited volume-locked'
  ).split(' '),
)

/** `an+b` */
export function nthOf(text: string): { a: number; b: number } {
  const formula = text.trim().toLowerCase()
  if (formula === 'odd') return { a: 2, b: 1 }
  if (formula === 'even') return { a: 2, b: 0 }
  if (/^[+-]?\d{1,9}$/.test(formula)) return { a: 0, b: Number(formula) }
  const match = /^([+-]?\d{0,9})n(?:\s*([+-])\s*(\d{1,9}))?$/.exec(formula)
  if (match === null) throw new Error(`${JSON.stringify(formula)} is not a formula like 2n+1`)
  const [, step = '', sign = '+', offset = '0'] = match
  const a = step === '' || step === '+' ? 1 : step === '-' ? -1 : Number(step)
  return { a, b: Number(sign + offset) }
}

export function languageRanges(text: string): string[][] {
  return text.split(',').map((range) => {
    const found = /^\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))\s*$/.exec(range)
    const language = found?.[1] ?? found?.[2] ?? found?.[3]
    if (language === undefined) throw new Error(`${JSON.stringify(text)} is not a language`)
    return language.toLowerCase().split('-')
  })
}

/** Whether the language is in the range: "extended filtering" of RFC 4647. Both are in lower case. */
export function isLanguageInRange(language: string, range: readonly string[]): boolean {
  if (language === '' || (range.length === 1 && range[0] === '')) return language === range.join('-')
  const subtags = language.split('-')
  if (range[0] !== '*' && range[0] !== subtags[0]) return false
  let at = 1
  for (let i = 1; i < range.length; ) {
    if (range[i] === '*') i++
    else if (at >= subtags.length) return false
    else if (subtags[at] === range[i]) {
      i++
      at++
    } else if (subtags[at]!.length === 1) return false
    else at++
  }
  return true
}
