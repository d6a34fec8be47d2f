/** Places as boards write them ("Boston, MA", "US-AR-SPRINGDALE", "Berlin or remote") → city, region and country. */

import { cityKey, isCityOf } from './cities.ts'
import type { Place, RawPlace } from './posting.ts'
import { countryOf, fold, regionOf } from './regions.ts'

const TEXT_CHARS_MAX = 500
/** A posting with more places is open everywhere. */
const PLACES_MAX = 100

/** One element per distinct place, in the given order. "Remote" is not a place; unrecognised text is kept as it is. */
export function parsePlaces(values: readonly (string | RawPlace | null | undefined)[] | undefined): Place[] {
  const places = new Map<string, Place>()
  for (const value of (values ?? []).slice(0, PLACES_MAX)) {
    const found = typeof value === 'string' ? fromText(value) : fromFields(value)
    for (const place of found) {
      const key = placeKey(place) || `raw:${fold(place.raw)}`
      if (!places.has(key) && places.size < PLACES_MAX) places.set(key, place)
    }
  }
  return [...places.values()]
}

/** The form in which places are compared. Regions count only if they have a code: boards often omit "Bavaria". */
export function placeKey({ city, region, country_iso2 }: Pick<Place, 'city' | 'region' | 'country_iso2'>): string {
  if (city === null && region === null && country_iso2 === null) return ''
  const code = region === null ? '' : (regionOf(region, country_iso2)?.code ?? '')
  const rest = city === null && code === '' && region !== null ? fold(region) : code
  return [city === null ? '' : cityKey(city), rest, country_iso2 ?? ''].join('|')
}

const SEPARATORS = /\s*(?:[|;•·\n]|\s\/\s|\s(?:or|oder|ou)\s)\s*/
const MORE = /(?:[,&+]|\band\b)?\s{0,3}\+?\d{1,3} (?:more|others?|other locations|weitere)(?: locations?)?\.?$/i

function fromText(text: string): Place[] {
  const short = text.slice(0, TEXT_CHARS_MAX).replace(/\s+/g, ' ').trim().replace(MORE, '')
  return short
    .split(SEPARATORS)
    .flatMap(splitPairs)
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .flatMap((part) => onePlace(part) ?? [])
}

/** "Boston, MA, Austin, TX" is two places. */
function splitPairs(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim())
  const isPairs = parts.length >= 4 && parts.length % 2 === 0
  if (!isPairs || !parts.every((part, i) => i % 2 === 0 || /^[A-Z]{2}$/.test(part))) return [text]
  return parts.flatMap((part, i) => (i % 2 === 0 ? [`${part}, ${parts[i + 1]}`] : []))
}

const WORKPLACE =
  /(?<![\p{L}\p{N}])(?:fully |100% |partly |temporarily )?(?:remote(?:ly)?|hybrid|on-?site|in-office|wfh|work from home|telecommute|home ?office|virtual|anywhere|worldwide|global|flexible|remoto|híbrido)(?: (?:within|only|first|friendly|optional|work|job|position|role|location|eligible))?(?![\p{L}\p{N}])/giu
const EDGES = /^[\s,:()[\]/–—-]+|[\s,:()[\]/–—-]+$/g

function onePlace(text: string): Place | undefined {
  const bare = text
    .replace(WORKPLACE, ' ')
    .replace(/\(\s*\)|\[\s*\]/g, ' ')
    .replace(/\s+/g, ' ')
  const isChanged = bare.trim() !== text
  const trimmed = bare.replace(EDGES, '')
  const words = isChanged ? trimmed.replace(/^(?:in|from|within|across)(?: the)? |^the /i, '') : trimmed
  if (words === '' || /^(?:in|from|within)$/i.test(words)) return undefined
  const place: Place = { raw: text, city: null, region: null, country_iso2: null, lat: null, lon: null }
  if (/^\d{1,3}\+? (?:locations?|places|offices)$|^(?:multiple|various|several) locations?$/i.test(words)) return place
  return Object.assign(place, readParts(partsOf(words)))
}

/** Most specific part first: "US-AR-SPRINGDALE-BLDG 1 ~ street" is reversed. */
function partsOf(text: string): string[] {
  const [before = ''] = text.split('~', 1)
  const code = /^([A-Z]{2,3})\s?-\s?(?:([A-Z]{2,3})\s?-\s?)?(.{1,200})$/.exec(before.trim())
  if (code !== null && (countryOf(code[1]!) !== null || regionOf(code[1]!) !== undefined)) {
    const place = code[3]!.split(/\s?-\s|-(?=[A-Z\d]{2})/)[0]!
    return tidy([place, code[2] ?? '', code[1]!])
  }
  const byComma = tidy(before.replace(/\(([^()]{0,80})\)/g, ', $1 ').split(','))
  const parts = byComma.length === 1 ? tidy(before.split(/\s[–—-]\s/)) : byComma
  const isCountryFirst = parts.length > 1 && countryOf(parts[0]!) !== null && countryOf(parts.at(-1)!) === null
  return isCountryFirst ? parts.toReversed() : parts
}

const POSTCODE =
  /(?<![\p{L}\p{N}])(?:\d{4,6}(?:-\d{3,4})?|[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d)(?![\p{L}\p{N}])/u
const BUILDING =
  /^\d+[A-Za-z]? |^\d+$|(?<![\p{L}])(?:bldg|building|floor|suite|street|road|avenue|ave|blvd|straße|strasse|str\.|unit|campus|p\.? ?o\.? box)(?![\p{L}])/iu

/** Removes postcodes, and street and building if anything else remains. */
function tidy(parts: readonly string[]): string[] {
  const clean = parts.map((part) => part.replace(POSTCODE, '').replace(EDGES, '')).filter((part) => part !== '')
  const places = clean.filter((part) => !BUILDING.test(part))
  return (places.length > 0 ? places : clean).slice(0, 6)
}

function readParts(parts: string[]): Partial<Place> {
  if (parts.length === 0) return {}
  if (parts.length === 1) return readSingle(parts[0]!)
  const last = parts.at(-1)!
  const city = parts[0]!
  const isAbroad = isCityOf(city, countryOf(last) ?? '')
  const state = parts.length === 2 && !isAbroad ? regionOf(last) : undefined
  if (state !== undefined) return { ...cityFields(city), region: state.code, country_iso2: state.country }
  const country = countryOf(last)
  if (country === null) {
    const region = regionOf(last)
    return { ...cityFields(city), region: region?.code ?? last, country_iso2: region?.country ?? null }
  }
  const middle = parts.length > 2 ? parts.at(-2)! : null
  if (middle === null) {
    const region = regionOf(city, country)
    if (region !== undefined && fold(city) !== 'new york') return { region: region.code, country_iso2: country }
  }
  const region = middle === null ? null : (regionOf(middle, country)?.code ?? middle)
  return { ...cityFields(city), region, country_iso2: country }
}

function readSingle(text: string): Partial<Place> {
  const end = /^(.{2,60}) ([A-Z]{2})$/.exec(text)
  const state = end === null ? undefined : regionOf(end[2]!)
  if (state !== undefined) return { ...cityFields(end![1]!), region: state.code, country_iso2: state.country }
  const region =
    text.length > 3 && fold(text) !== 'new york' && fold(text) !== 'washington' ? regionOf(text) : undefined
  if (region !== undefined && fold(text) !== 'georgia') return { region: region.code, country_iso2: region.country }
  const isAlias = cityKey(text) !== fold(text)
  const country = isAlias ? null : countryOf(text)
  return country === null || fold(text) === 'singapore'
    ? { ...cityFields(text), country_iso2: country }
    : { country_iso2: country }
}

const AREA =
  /^(?:greater |metro(?:politan)? )(.{2,60}?)(?: area| region| metropolitan area)?$|^(.{2,60}?)(?: city)?(?:,? (?:greater |metro(?:politan)? |bay )area| metro(?:politan)?(?: region)?| und umgebung| area)$/i
/** Display names for common short forms of cities; the key covers more spellings. */
const SHOWN: Readonly<Record<string, string>> = {
  nyc: 'New York',
  'new york city': 'New York',
  sf: 'San Francisco',
  la: 'Los Angeles',
  'bay area': 'San Francisco',
  'washington dc': 'Washington',
  'washington d c': 'Washington',
}

function cityFields(text: string): Pick<Place, 'city' | 'area'> {
  const name = text.slice(0, 100)
  const area = AREA.exec(name)
  const city = (area?.[1] ?? area?.[2] ?? name).trim()
  const key = fold(city)
  const isArea = area !== null || key === 'bay area'
  const shown = Object.hasOwn(SHOWN, key) ? SHOWN[key]! : /^[A-Z][A-Z .'-]{3,}$/.test(city) ? titleCase(city) : city
  return isArea ? { city: shown, area: true } : { city: shown }
}

const titleCase = (text: string) => text.toLowerCase().replace(/(?<![\p{L}'])\p{L}/gu, (letter) => letter.toUpperCase())

function fromFields(value: RawPlace | null | undefined): Place[] {
  if (value === null || value === undefined || typeof value !== 'object') return []
  const [city, region, country] = [value.city, value.region, value.country].map(clean)
  const raw = clean(value.raw) ?? [city, region, country].filter((part) => part !== undefined).join(', ')
  if (raw === '') return []
  const point = { lat: coordinate(value.lat, 90), lon: coordinate(value.lon, 180) }
  if (city === undefined && region === undefined) {
    const found = clean(value.raw) === undefined ? [] : fromText(raw)
    const iso2 = country === undefined ? null : countryOf(country)
    if (found.length === 0)
      return iso2 === null ? [] : [{ raw, city: null, region: null, country_iso2: iso2, ...point }]
    return found.map((place) => ({
      ...place,
      ...(found.length === 1 ? point : {}),
      country_iso2: iso2 ?? place.country_iso2,
    }))
  }
  // "Remote" in the city field is not a city.
  const named = city === undefined ? undefined : onePlace(city)
  if (city !== undefined && named === undefined && region === undefined && country === undefined) return []
  const iso2 = country === undefined ? null : countryOf(country)
  const state = region === undefined ? undefined : regionOf(region, iso2)
  const fields =
    named?.city !== null && named?.city !== undefined
      ? cityFields(named.city)
      : { city: named === undefined ? null : city! }
  const area = named?.area === true ? { area: true as const } : {}
  return [
    {
      raw,
      ...fields,
      ...area,
      region: state?.code ?? region ?? named?.region ?? null,
      country_iso2: iso2 ?? state?.country ?? named?.country_iso2 ?? null,
      ...point,
    },
  ]
}

function clean(value: string | null | undefined): string | undefined {
  const text = typeof value === 'string' ? value.slice(0, TEXT_CHARS_MAX).replace(/\s+/g, ' ').trim() : ''
  return text === '' ? undefined : text
}

/** Boards use 0/0 for unknown coordinates. */
function coordinate(value: number | null | undefined, bound: number): number | null {
  return typeof value === 'number' && Number.isFinite(value) && Math.abs(value) <= bound && value !== 0 ? value : null
}
