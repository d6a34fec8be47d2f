/** Names and codes of countries, and of the states people write instead of a country. */

const COUNTRY_CODES = `
  AD AE AF AG AI AL AM AO AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BW BY BZ CA CC
  CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA
  GB GD GE GF GG GH GI GL GM GN GP GQ GR GT GU GW GY HK HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE
  KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS
  MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PR PS PT PW PY QA RE RO RS
  RU RW SA SB SC SD SE SG SH SI SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TG TH TJ TL TM TN TO TR TT TV TW TZ UA
  UG US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW
`
  .trim()
  .split(/\s+/)

/** Languages whose country names are recognised. */
const LANGUAGES = [
  'en',
  'de',
  'fr',
  'es',
  'it',
  'pt',
  'nl',
  'sv',
  'pl',
  'cs',
  'da',
  'nb',
  'fi',
  'tr',
  'ja',
  'zh',
  'zh-Hant',
  'ko',
  'ru',
]

const OTHER_NAMES: Readonly<Record<string, string>> = {
  usa: 'US',
  'u s a': 'US',
  'u s': 'US',
  us: 'US',
  america: 'US',
  'united states of america': 'US',
  'the united states': 'US',
  uk: 'GB',
  'u k': 'GB',
  'great britain': 'GB',
  britain: 'GB',
  england: 'GB',
  scotland: 'GB',
  wales: 'GB',
  'northern ireland': 'GB',
  gbr: 'GB',
  deu: 'DE',
  ger: 'DE',
  fra: 'FR',
  esp: 'ES',
  ita: 'IT',
  nld: 'NL',
  holland: 'NL',
  'the netherlands': 'NL',
  bel: 'BE',
  che: 'CH',
  sui: 'CH',
  aut: 'AT',
  swe: 'SE',
  nor: 'NO',
  dnk: 'DK',
  fin: 'FI',
  pol: 'PL',
  cze: 'CZ',
  'czech republic': 'CZ',
  irl: 'IE',
  'republic of ireland': 'IE',
  prt: 'PT',
  aus: 'AU',
  nzl: 'NZ',
  can: 'CA',
  mex: 'MX',
  bra: 'BR',
  arg: 'AR',
  col: 'CO',
  chl: 'CL',
  ind: 'IN',
  bharat: 'IN',
  chn: 'CN',
  jpn: 'JP',
  kor: 'KR',
  korea: 'KR',
  'south korea': 'KR',
  'republic of korea': 'KR',
  sgp: 'SG',
  hkg: 'HK',
  twn: 'TW',
  phl: 'PH',
  idn: 'ID',
  mys: 'MY',
  tha: 'TH',
  vnm: 'VN',
  viet: 'VN',
  vietnam: 'VN',
  isr: 'IL',
  uae: 'AE',
  'u a e': 'AE',
  are: 'AE',
  sau: 'SA',
  ksa: 'SA',
  tur: 'TR',
  turkey: 'TR',
  turkiye: 'TR',
  zaf: 'ZA',
  rsa: 'ZA',
  ukr: 'UA',
  rou: 'RO',
  bgr: 'BG',
  hun: 'HU',
  grc: 'GR',
  hrv: 'HR',
  srb: 'RS',
  egy: 'EG',
  nga: 'NG',
  ken: 'KE',
  pak: 'PK',
  bgd: 'BD',
  usa1: 'US',
  macedonia: 'MK',
  'hong kong': 'HK',
  macau: 'MO',
  'ivory coast': 'CI',
  burma: 'MM',
  russia: 'RU',
  'russian federation': 'RU',
  'cape verde': 'CV',
}

const US_STATES = `
  AL Alabama|AK Alaska|AZ Arizona|AR Arkansas|CA California|CO Colorado|CT Connecticut|DE Delaware|
  DC District of Columbia|FL Florida|GA Georgia|HI Hawaii|ID Idaho|IL Illinois|IN Indiana|IA Iowa|KS Kansas|
  KY Kentucky|LA Louisiana|ME Maine|MD Maryland|MA Massachusetts|MI Michigan|MN Minnesota|MS Mississippi|
  MO Missouri|MT Montana|NE Nebraska|NV Nevada|NH New Hampshire|NJ New Jersey|NM New Mexico|NY New York|
  NC North Carolina|ND North Dakota|OH Ohio|OK Oklahoma|OR Oregon|PA Pennsylvania|RI Rhode Island|
  SC South Carolina|SD South Dakota|TN Tennessee|TX Texas|UT Utah|VT Vermont|VA Virginia|WA Washington|
  WV West Virginia|WI Wisconsin|WY Wyoming|PR Puerto Rico
`
const CA_PROVINCES = `
  AB Alberta|BC British Columbia|MB Manitoba|NB New Brunswick|NL Newfoundland and Labrador|NS Nova Scotia|
  NT Northwest Territories|NU Nunavut|ON Ontario|PE Prince Edward Island|QC Quebec|SK Saskatchewan|YT Yukon
`
const AU_STATES =
  'NSW New South Wales|VIC Victoria|QLD Queensland|WA Western Australia|SA South Australia|TAS Tasmania|ACT Australian Capital Territory|NT Northern Territory'

/** Lower case, without accents and punctuation. */
export function fold(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/ß/g, 'ss')
    .replace(/ø/g, 'o')
    .replace(/ł/g, 'l')
    .replace(/æ/g, 'ae')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
}

interface Region {
  code: string
  country: string
}

const CODES = new Set(COUNTRY_CODES)
const regionsByCountry = new Map<string, Map<string, Region>>()
for (const [country, list] of [
  ['US', US_STATES],
  ['CA', CA_PROVINCES],
  ['AU', AU_STATES],
] as const) {
  const regions = new Map<string, Region>()
  for (const entry of list.trim().split(/\|\s*/)) {
    const space = entry.indexOf(' ')
    const region = { code: entry.slice(0, space), country }
    regions.set(fold(region.code), region)
    regions.set(fold(entry.slice(space + 1)), region)
  }
  regionsByCountry.set(country, regions)
}

/** A state of the US, Canada or Australia, by code or name; the first match, or the one in the given country. */
export function regionOf(text: string, country?: string | null): Region | undefined {
  const key = fold(text)
  if (country !== undefined && country !== null) return regionsByCountry.get(country)?.get(key)
  for (const regions of regionsByCountry.values()) {
    const region = regions.get(key)
    if (region !== undefined) return region
  }
  return undefined
}

let names: Map<string, string> | undefined

/** Built on first use: 5,000 names, some 10 ms. */
function countryNames(): Map<string, string> {
  const found = new Map<string, string>()
  for (const language of LANGUAGES) {
    const display = new Intl.DisplayNames([language], { type: 'region', fallback: 'none' })
    for (const code of COUNTRY_CODES) {
      const name = display.of(code)
      if (name !== undefined && !found.has(fold(name))) found.set(fold(name), code)
    }
  }
  for (const [name, code] of Object.entries(OTHER_NAMES)) found.set(name, code)
  return found
}

/** ISO 3166 code of a country, by code or by name in many languages; null if unknown. */
export function countryOf(text: string): string | null {
  const trimmed = text.trim()
  if (trimmed.length > 60) return null
  const code = trimmed.toUpperCase()
  if (code === 'UK') return 'GB'
  if (CODES.has(code)) return code
  names ??= countryNames()
  return names.get(fold(trimmed)) ?? null
}
