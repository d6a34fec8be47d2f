/** Canonical city names, and the country of cities whose "City, XX" would otherwise be read as a US state. */
import { fold } from './regions.ts'

/** Spelling of a city → the canonical one used in comparisons. */
const ALIASES: Readonly<Record<string, string>> = {
  nyc: 'new york',
  'new york city': 'new york',
  'ny city': 'new york',
  manhattan: 'new york',
  sf: 'san francisco',
  'sf bay area': 'san francisco',
  'bay area': 'san francisco',
  'san francisco bay area': 'san francisco',
  'silicon valley': 'san francisco',
  la: 'los angeles',
  dc: 'washington',
  'washington dc': 'washington',
  'washington d c': 'washington',
  philly: 'philadelphia',
  dfw: 'dallas',
  'dallas fort worth': 'dallas',
  'saint louis': 'st louis',
  munchen: 'munich',
  muenchen: 'munich',
  koln: 'cologne',
  koeln: 'cologne',
  nurnberg: 'nuremberg',
  nuernberg: 'nuremberg',
  duesseldorf: 'dusseldorf',
  'frankfurt am main': 'frankfurt',
  'frankfurt main': 'frankfurt',
  hannover: 'hanover',
  wien: 'vienna',
  zuerich: 'zurich',
  geneve: 'geneva',
  genf: 'geneva',
  basle: 'basel',
  praha: 'prague',
  warszawa: 'warsaw',
  krakow: 'cracow',
  wroclaw: 'wroclaw',
  milano: 'milan',
  roma: 'rome',
  torino: 'turin',
  firenze: 'florence',
  napoli: 'naples',
  lisboa: 'lisbon',
  sevilla: 'seville',
  bruxelles: 'brussels',
  brussel: 'brussels',
  antwerpen: 'antwerp',
  gent: 'ghent',
  'den haag': 'the hague',
  kobenhavn: 'copenhagen',
  koebenhavn: 'copenhagen',
  goteborg: 'gothenburg',
  helsingfors: 'helsinki',
  moskva: 'moscow',
  kiev: 'kyiv',
  bucuresti: 'bucharest',
  bangalore: 'bengaluru',
  bombay: 'mumbai',
  madras: 'chennai',
  calcutta: 'kolkata',
  gurgaon: 'gurugram',
  'new delhi': 'delhi',
  'ciudad de mexico': 'mexico city',
  cdmx: 'mexico city',
  'sao paulo': 'sao paulo',
  'tel aviv yafo': 'tel aviv',
  'tel aviv jaffa': 'tel aviv',
  東京: 'tokyo',
  东京: 'tokyo',
  北京: 'beijing',
  上海: 'shanghai',
  深圳: 'shenzhen',
  大阪: 'osaka',
  'ho chi minh': 'ho chi minh city',
  saigon: 'ho chi minh city',
  montreal: 'montreal',
  'quebec city': 'quebec',
}

/** By country whose code is also a US state (or Canadian province): "Berlin, DE" is not in Delaware. */
const ABROAD: Readonly<Record<string, string>> = {
  DE: `
  berlin munich hamburg cologne frankfurt stuttgart dusseldorf leipzig dortmund essen bremen dresden hanover
  nuremberg duisburg bochum wuppertal bielefeld bonn munster karlsruhe mannheim augsburg wiesbaden potsdam
  freiburg heidelberg darmstadt regensburg ulm kiel mainz jena erfurt aachen ingolstadt walldorf wolfsburg
  bayreuth paderborn magdeburg rostock kassel saarbrucken garching unterfohring
`,
  IN: `
  bengaluru mumbai delhi hyderabad chennai pune kolkata gurugram noida ahmedabad jaipur kochi thiruvananthapuram
  coimbatore indore chandigarh nagpur mysore lucknow
`,
  CA: `
  toronto vancouver montreal ottawa calgary edmonton winnipeg mississauga waterloo kitchener halifax victoria
  quebec brampton hamilton burnaby markham saskatoon regina
`,
  IL: 'tel aviv jerusalem haifa herzliya petah tikva ramat gan netanya raanana rehovot beer sheva yokneam hod hasharon',
  CO: 'bogota medellin cali barranquilla cartagena bucaramanga',
  AR: 'buenos aires rosario mendoza la plata',
  MA: 'casablanca rabat marrakech tangier fes agadir',
  PA: 'panama panama city',
  GA: 'libreville',
  TN: 'tunis sfax sousse',
  AL: 'tirana durres',
  MD: 'chisinau',
  ME: 'podgorica',
  MT: 'valletta sliema st julians birkirkara',
  ID: 'jakarta bandung surabaya yogyakarta denpasar medan',
  LA: 'vientiane',
  MN: 'ulaanbaatar',
  MS: '',
  NE: 'niamey',
  SC: 'mahe',
  SD: 'khartoum',
  VA: 'vatican city',
  AZ: 'baku',
  KY: 'george town',
  NC: 'noumea',
  PR: '',
  NL: 'amsterdam rotterdam utrecht eindhoven the hague delft groningen',
  SK: 'bratislava kosice zilina',
  PE: 'lima arequipa cusco',
  SA: 'riyadh jeddah dammam khobar',
  GE: 'tbilisi batumi',
  WA: '',
  NT: '',
}

const countryByCity = new Map<string, Set<string>>()
for (const [code, cities] of Object.entries(ABROAD)) {
  const words = cities.trim().split(/\s+/)
  // Some names have two or three words: any sequence of words may be one.
  for (let from = 0; from < words.length; from++) {
    for (let to = from + 1; to <= Math.min(words.length, from + 3); to++) {
      const city = words.slice(from, to).join(' ')
      if (city !== '') countryByCity.set(city, (countryByCity.get(city) ?? new Set()).add(code))
    }
  }
}

/** The form in which cities are compared: folded, canonical spelling. */
export function cityKey(city: string): string {
  const key = fold(city).replace(/^saint /, 'st ')
  return Object.hasOwn(ALIASES, key) ? ALIASES[key]! : key
}

/** Whether this is a known city of the country with this code. */
export function isCityOf(city: string, country: string): boolean {
  return countryByCity.get(cityKey(city))?.has(country) ?? false
}
