/** Whether work is on-site, remote or hybrid; null if unknown. */
import type { Workplace } from './posting.ts'

interface WorkplaceSigns {
  /** A structured field: 'Remote', 'on-site', 'TELECOMMUTE', 'fully' … */
  field?: string | null | undefined
  /** A structured flag; only `true` is meaningful. */
  isRemote?: boolean | null | undefined
  locations?: readonly string[] | undefined
  title?: string | undefined
}

const REMOTE =
  /(?<![\p{L}\p{N}])(?:remote|remotely|remoto|remota|télétravail|teletravail|teletrabajo|teletrabalho|home ?office|homeoffice|telecommut\w{0,4}|telework\w{0,3}|work from (?:home|anywhere)|wfh|virtual|distans|zdalna|zdalnie|thuiswerk\w{0,2})(?![\p{L}\p{N}])|リモート|在宅|远程|遠端/iu
const HYBRID =
  /(?<![\p{L}\p{N}])(?:hybrid\w{0,2}|híbrido|hybride|ibrido|hibrido|hybrydow\w{1,2})(?![\p{L}\p{N}])|ハイブリッド|混合/iu
const ONSITE =
  /(?<![\p{L}\p{N}])(?:on ?site|in ?office|in ?person|office ?based|vor ort|sur site|presencial|in sede|op locatie|på plats|stacjonarn\w{1,2})(?![\p{L}\p{N}])|出社|现场/iu
const NOT_REMOTE = /(?<![\p{L}])(?:no|not|non|kein|keine|pas de|without)[ -]{1,2}(?:\w{1,12} )?remote/iu
/** Values that Teamtailor, BambooHR, schema.org and others use in their field; anything else is read as text. */
const FIELD: Readonly<Record<string, Workplace | null>> = {
  fully: 'remote',
  full: 'remote',
  temporary: 'hybrid',
  none: null,
  unspecified: null,
  '0': 'onsite',
  '1': 'remote',
  '2': 'hybrid',
  office: 'onsite',
  physical: 'onsite',
  partial: 'hybrid',
  partially: 'hybrid',
  flexible: 'hybrid',
  anywhere: 'remote',
}

const TEXT_CHARS_MAX = 300

/** Reads text. "Remote or hybrid" is hybrid: no one may stay away all week. */
function workplaceInText(text: string): Workplace | null {
  const words = text.slice(0, TEXT_CHARS_MAX).replace(/[\s_\u2010-\u2015-]+/g, ' ')
  const isRemote = REMOTE.test(words) && !NOT_REMOTE.test(words)
  if (HYBRID.test(words) || (isRemote && ONSITE.test(words))) return 'hybrid'
  return isRemote ? 'remote' : ONSITE.test(words) ? 'onsite' : null
}

/** A word in a description is only a hint: "no remote work", "remote sensing". */
export function mentionsRemote(text: string): boolean {
  return REMOTE.test(text)
}

/** Structured values take precedence over words in the location, and those over words in the title. */
export function workplaceOf({ field, isRemote, locations = [], title = '' }: WorkplaceSigns): Workplace | null {
  const key = typeof field === 'string' ? field.trim().toLowerCase() : ''
  const byField = Object.hasOwn(FIELD, key) ? FIELD[key]! : workplaceInText(key)
  if (byField !== null) return byField
  if (isRemote === true) return 'remote'
  const byPlace = locations
    .filter((place) => typeof place === 'string')
    .slice(0, 50)
    .map(workplaceInText)
  if (byPlace.some((place) => place !== null)) {
    return byPlace.includes('hybrid') ? 'hybrid' : byPlace.includes('remote') ? 'remote' : 'onsite'
  }
  return workplaceInText(title)
}
