/** Words around a number that mark it as pay, give its interval, or show that it is something else. */
import type { Interval } from './posting.ts'

/** These patterns only run over windows of about 60 characters, and are tested with hostile input. */
const word = (list: string) => new RegExp(`(?<![\\p{L}\\p{N}])(?:${oneLine(list)})(?![\\p{L}\\p{N}])`, 'giu')

/** Word lists span several lines for readability. */
function oneLine(list: string): string {
  return list.replace(/\n\s*/g, '').trim()
}

const PER = '(?:per|в|a|an|each|every|pro|par|por|al|la|il|le|ao|à|na|za|pe|i|om|pr\\.?|je|de l.|all.|/|p/) ?'
const SLASH = '\\s?/\\s?'

const INTERVAL_WORDS: Readonly<Record<Interval, readonly RegExp[]>> = {
  hour: [
    word(
      `${PER}(?:hours?|hr|hrs|h|std\\.?|stunde|heure|hora|ora|uur|godz\\w{0,5}|hod\\w{0,5}|timme\\w?|timen|time|saat|oră|час)`,
    ),
    word(
      `
  hourly|stündlich|stundenlohn|stundensatz|timlön|timeløn\\w?|ph|p\\.h\\.|uurloon|godzinow\\w|taux horaire|
  hodinov\\w|die stunde|l.heure
`,
    ),
    /時給|时薪|時薪|小时|시급/gu,
    new RegExp(`${SLASH}(?:hours?|hr|hrs|h|std|stunde|heure|hora|ora|uur|godz|hod|timme|time)(?![\\p{L}])`, 'giu'),
  ],
  day: [
    word(`${PER}(?:days?|tag|jour|d[ií]a|giorno|dag|dzień|den|zi|день)`),
    word('daily|day rate|tagessatz|tjm|dagtarief|dagsats|täglich|dniówka|pd|p\\.d\\.'),
    /日給|日薪|일급/gu,
    new RegExp(`${SLASH}(?:days?|d|tag|jour|j|d[ií]a|giorno|dag|天|日)(?![\\p{L}])`, 'giu'),
  ],
  week: [
    word(`${PER}(?:weeks?|wk|woche|semaine|semana|settimana|vecka\\w?|uke\\w?|uge\\w?|tydzień|týden)`),
    word('weekly|wöchentlich|pw|p\\.w\\.|wekelijks|hebdomadaire'),
    /週給|周薪|週薪|주급/gu,
    new RegExp(`${SLASH}(?:weeks?|wk|w|woche|semaine|semana|settimana|周|週)(?![\\p{L}])`, 'giu'),
  ],
  month: [
    word(
      `${PER}(?:months?|mo|monat|mois|mes|m[eê]s|mese|maand|mies\\w{0,8}|měs\\w{0,5}|månad\\w{0,2}|måned\\w{0,2}|mnd|ay|bulan|tháng|kuukausi|lun[ăa]|месяц|місяць|hó)`,
    ),
    word(
      `
  monthly|monatlich|im monat|monatsgehalt|mensuel\\w{0,3}|mensual\\w{0,2}|mensal|mensais|mensil[ei]|maandelijks|
  miesięcznie|mies\\.?|měsíčně|månadslön|månadsvis|pcm|pm|p\\.m\\.|p/m|aylık|bruttomonatsgehalt|mtl\\.?
`,
    ),
    /月給|月薪|月収|월급/gu,
    new RegExp(
      `${SLASH}(?:months?|mo|mth|m|monat|mois|mes|m[eê]s|mese|maand|mies|miesiąc|měs|měsíc|mån|mnd|bulan|bln|kk|hó|月)(?![\\p{L}])`,
      'giu',
    ),
  ],
  year: [
    word(`${PER}(?:years?|yr|annum|jahr|an|année|año|ano|anno|jaar|rok|år|året|yıl|tahun|vuosi|год|év)`),
    word(
      `
  annual|annually|annualized|annualised|yearly|p\\.? ?a\\.?|p/a|jährlich|im jahr|jahresgehalt|jahresbrutto|
  bruttojahresgehalt|annuels?|annuelle|anual(?:es|mente)?|annu[iaoe]|annual[ei]|ral|jaarlijks|rocznie|ročně|
  årslön|årsløn\\w?|yıllık|lpa|ctc|lacs?|lakhs?
`,
    ),
    /年収|年薪|年俸|연봉/gu,
    new RegExp(`${SLASH}(?:years?|yr|y|a|annum|jahr|an|année|año|ano|anno|jaar|rok|år|v|év|年)(?![\\p{L}])`, 'giu'),
  ],
}

/** "40 hours per week" does not mean weekly pay. */
const NOT_PAID_BY =
  /(?:hours?|hrs?|h|days?|stunden|heures|horas|uur|godzin|timmar|shifts?|times?|weeks?|months?|tage|jours) ?$/iu
/** "Paid monthly" and "bi-weekly" say when, not for which period. */
const WHEN_PAID = /(?:paid|payable|bi|semi|reviewed|review) ?-?$/iu

interface IntervalFound {
  interval: Interval
  at: number
  end: number
}

/** The interval words in a short text, in order. */
export function intervalsIn(window: string): IntervalFound[] {
  const found: IntervalFound[] = []
  for (const interval of Object.keys(INTERVAL_WORDS) as Interval[]) {
    for (const pattern of INTERVAL_WORDS[interval]) {
      for (const match of window.matchAll(pattern)) {
        const before = window.slice(Math.max(0, match.index - 12), match.index)
        if (!NOT_PAID_BY.test(before) && !WHEN_PAID.test(before)) {
          found.push({ interval, at: match.index, end: match.index + match[0].length })
        }
      }
    }
  }
  return found.sort((a, b) => a.at - b.at || b.end - a.end)
}

const FIELD: readonly (readonly [RegExp, Interval])[] = [
  [/hour|hr\b|^h$|stunde|heure|hora\b|wage$/i, 'hour'],
  [/year|annu|^yr|^a$|jahr|p\.?a\.?$|año|\ban\b/i, 'year'],
  [/month|^mo$|monat|mois|mes\b|mensual/i, 'month'],
  [/week|^wk|woche|semaine/i, 'week'],
  [/day|dai|^d$|tag$|jour|diem/i, 'day'],
]

/** Parses a board's interval field: 'per-year-salary', 'YEARLY', '1 HOUR', 'p.a.' */
export function intervalOf(value: string | null | undefined): Interval | null {
  if (typeof value !== 'string') return null
  const text = value.trim().slice(0, 60)
  // '2 WEEKS' and the like are not intervals we support.
  if (/(?:^|\D)(?:[2-9]|1\d)(?!\d)/.test(text) || /bi-?week|semi|quarter|half/i.test(text)) return null
  return FIELD.find(([words]) => words.test(text))?.[1] ?? null
}

const PAY = word(
  `
  salary|salaries|base|base pay|pay|pays|paying|paid|compensation|remuneration|wages?|earn|earning|earnings|rate|
  package|ctc|ote|income|tc|gehalt\\w{0,3}|\\w{0,20}gehalt|lohn|vergütung|verdienst|entgelt|brutto\\w{0,20}|netto|
  salaire|rémunération|brut|fixe|sueldo|salario|retribución|retribuzione|stipendio|lordi|lordo|ral|bruto|salário|
  remuneração|bolsa|salaris|salariu|зарплата|оклад|loon|lön|løn|lønn|månadslön|wynagrodzenie|pensja|zarobki|mzda|plat|maaş|ücret|lpa|
  super|superannuation|doe|dep\\. on experience|depending on experience|negotiable|fte|hourly
`,
)
const PAY_CJK = /年収|月給|時給|日給|給与|年俸|年薪|月薪|薪|工资|待遇|연봉|월급|시급|급여/gu

/** Base pay is preferred to on-target earnings. */
export const BASE = word('base|base salary|base pay|fixum|fixgehalt|fixe|basic|grundgehalt|fijo')
export const ON_TARGET = word(
  'ote|on[ -]target earnings|on[ -]target|total comp(?:ensation)?|total cash|tc|total earnings|zielgehalt|all[ -]in',
)

/** Words near a number that mean it is not pay. */
const OTHER = oneLine(`
  bonus\\w{0,2}|bonificación|sign[ -]?(?:on|ing)|joining|referral|relocation|401 ?\\(?k\\)?|403b|match(?:ing|ed|
  es)?|rais(?:e|es|ed|ing)|funding|funded|revenues?|customers? pay|customers|(?:clients|users|members|
  subscribers) pay|savings|budgets?|equity grants?|stock options?|rsus?|stipends?|discounts?|allowances?|
  reimburse\\w{0,5}|tuition|series [a-f]|valuation|quota|arr|mrr|acv|gmv|aum|deductible|hsa|fsa|pension|vouchers?|
  gift cards?|prizes?|scholarships?|donations?|ad spend|differential|severance|deal sizes?|profit[ -]sharing|
  loan forgiveness|forgiveness|raffles?|giveaways?|subsid(?:y|ies)|incentives?|copays?|cash ?back|contributions?|
  commissions? (?:potential|of|up to)|commissions?:|prämie|zuschuss|zuschüsse|umsatz|urlaubsgeld|weihnachtsgeld|primes?|
  chiffre d.affaires|bono|
  facturación|presupuesto|premia|premie|obrót
`)
/** So do these, but they also occur in titles ("Insurance Agent, $50,000 a year"): they count only if tied to the number. */
const OTHER_TIED = oneLine(`
  deals?|deal sizes?|contracts?|contract values?|projects?|loans?|loan amounts?|mortgages?|insurance|coverage|
  premiums?|credits?|grants?|awards?|costs?|prices?|fees?|fines?|penalt(?:y|ies)|rent|invoices?|transactions?|
  sales|profits?|portfolios?|assets|investments?|orders?|accounts?|targets?|spend|spending|homes?|properties|
  turnover|stock|shares|options|overtime|tips|perks?|benefits?|incentives?|grew|growth|losses|debts?|volume|
  purchases?|clients?|companies|businesses|funds?|plans?|subscriptions?|income of households
`)
const OTHER_VERBS = oneLine(`
  cut|cuts|cutting|reduc(?:e|es|ed|ing)|manag(?:e|es|ed|ing)|process(?:es|ed|ing)?|saves?|saved|saving|invest(?:ed|s|ing)?|spend(?:s|ing)?|generat(?:e|
  es|ed|ing)|worth|valued at|premiums?|fees?|rent|prices?|deposits?|copays?|donat(?:e|ed|ing)|priced at|grow|win|contribut(?:e|es|ed|ing)|costs?|handl(?:e|es|
  ing)|clos(?:e|ed|ing)|sell(?:s|ing)?|borrow|lend(?:s|ing)?|insured
`)
const VETO = word(OTHER)
const TIES = oneLine(`
  (?:of|by|worth|from|between|up to|to|over|in|is|are|at|with|ranging|about|around|approximately|exceeding|averaging|
  average|valued|totaling|starting|than|more|per|the|a|:|-)
`)
/** The object of the verb, and approximations: "saves our clients up to". */
const OBJECTS =
  '(?: (?:our|your|their|the|its|each|every|many|most)){0,2}(?: \\p{L}{1,14}s| them| you| us)?(?: (?:of|by|up to|over|about|around|between|from|approximately)){0,2}'
const TIED = new RegExp(
  `(?<![\\p{L}])(?:(?:${OTHER_TIED}) ?(?:${TIES} ?){1,4}|(?:${OTHER_VERBS})${OBJECTS})\\s{0,2}$`,
  'iu',
)
const VETO_CJK = /賞与|手当|交通費|奖金|补贴|津贴|資本金|注册资本|売上|融资/gu

/** End positions of the last pay word and the last other word before a number; -1 if there is none. */
export function lastWords(before: string): { pay: number; veto: number } {
  const tied = TIED.test(before) ? before.length : -1
  return {
    pay: Math.max(lastEnd(before, PAY), lastEnd(before, PAY_CJK)),
    veto: Math.max(lastEnd(before, VETO), lastEnd(before, VETO_CJK), tied),
  }
}

export function hasPayWord(text: string): boolean {
  return lastEnd(text, PAY) !== -1 || lastEnd(text, PAY_CJK) !== -1
}

export function lastEnd(text: string, pattern: RegExp): number {
  let end = -1
  for (const match of text.matchAll(pattern)) end = match.index + match[0].length
  return end
}

/** Words that add something to the pay, so that what follows does not describe the number: "$100k plus bonus". */
const JOINED =
  /[+,;()&/]|(?<![\p{L}])(?:plus|and|with|und|et|y|including|incl|base|salary|pay|as|depending|doe|bonus eligible)(?![\p{L}])/iu
/** Words that directly follow: "$10K signing bonus", "$500 per month stipend", "$5M in annual revenue". */
const AFTER_VETO = new RegExp(
  `^[\\s-]{0,2}(?:[\\p{L}'’/.-]{1,14}\\s){0,4}(?:${OTHER}|towards?)(?![\\p{L}\\p{N}])`,
  'iu',
)
const PERKS = 'wellness|wellbeing|lifestyle|fitness|health|learning|education|training|development|childcare|equipment'
const DAILY = 'gym|phone|internet|transit|commut(?:er|ing)|parking'
/** Forms that may follow the number and its interval: "$300 per month in parking", "£1.2M annual sales target". */
const AFTER_FORMS = [
  `(?:in|of|worth of|for|off) (?:[\\p{L}-]{1,14} ){0,2}(?:${OTHER_TIED}|${DAILY}|meals?|lunch|health|wellness|learning|education)`,
  `(?:${PERKS}) (?:\\p{L}{1,12} )?(?:benefits?|programs?|perks?|accounts?|pot)`,
  '(?:quarterly |yearly )?(?:sales |revenue |profit )?(?:targets?|portfolios?|turnover|pipelines?|territory)',
  `(?:${DAILY}|life insurance|(?:\\p{L}{1,12} )?credits?|copays?|prize|grants?|investments?|loans?|deposits?|fund)`,
  'more (?:each|every|per|a)',
]
const AFTER_TIED = new RegExp(
  `^\\s?(?:per \\p{L}{1,6} |\\/\\p{L}{1,6} |monthly |annual |annually )?(?:${AFTER_FORMS.join('|')})(?![\\p{L}\\p{N}])`,
  'iu',
)

export function isVetoedAfter(after: string): boolean {
  const joint = JOINED.exec(after.slice(0, 60))
  const near = joint === null || /^\s?\/\s?\p{L}/u.test(after) ? after.slice(0, 60) : after.slice(0, joint.index)
  return AFTER_VETO.test(near) || AFTER_TIED.test(near)
}
