/** Places as boards write them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePlaces, placeKey } from './location.ts'
import { countryOf } from './regions.ts'

const short = (text: string) =>
  parsePlaces([text]).map(({ city, region, country_iso2 }) => [city, region, country_iso2])

test('reads city, region and country in any notation', () => {
  const cases: readonly [string, (string | null)[]][] = [
    ['Boston, MA', ['Boston', 'MA', 'US']],
    ['Boston, Massachusetts, United States', ['Boston', 'MA', 'US']],
    ['Boston, MA 02110', ['Boston', 'MA', 'US']],
    ['Toronto, ON', ['Toronto', 'ON', 'CA']],
    ['Toronto, CA', ['Toronto', null, 'CA']],
    ['Sydney, NSW', ['Sydney', 'NSW', 'AU']],
    ['Berlin, DE', ['Berlin', null, 'DE']],
    ['Wilmington, DE', ['Wilmington', 'DE', 'US']],
    ['Berlin, Deutschland', ['Berlin', null, 'DE']],
    ['10115 Berlin, Germany', ['Berlin', null, 'DE']],
    ['İstanbul, Türkiye', ['İstanbul', null, 'TR']],
    ['London, England, United Kingdom', ['London', 'England', 'GB']],
    ['London, UK', ['London', null, 'GB']],
    ['IL-Chicago', ['Chicago', 'IL', 'US']],
    ['US-AR-SPRINGDALE-BLDG 1 ~ 1 Main Street', ['Springdale', 'AR', 'US']],
    ['US, CA, Santa Clara', ['Santa Clara', 'CA', 'US']],
    ['Germany - Berlin', ['Berlin', null, 'DE']],
    ['NYC', ['New York', null, null]],
    ['123 Main St, Suite 5, Austin, TX', ['Austin', 'TX', 'US']],
    ['Remote - US', [null, null, 'US']],
    ['Remote in United States', [null, null, 'US']],
    ['Boston, MA (Hybrid)', ['Boston', 'MA', 'US']],
    ['California', [null, 'CA', 'US']],
    ['東京', ['東京', null, null]],
    ['Atlantis, Neverland', ['Atlantis', 'Neverland', null]],
  ]
  for (const [text, place] of cases) assert.deepEqual(short(text), [place], text)
})

test('splits several places, and returns none for purely remote jobs', () => {
  assert.equal(short('Boston, MA | Austin, TX').length, 2)
  assert.equal(short('Boston, MA; Austin, TX; Remote').length, 2)
  assert.equal(short('Berlin or Munich').length, 2)
  assert.equal(short('Boston, MA, Austin, TX').length, 2)
  assert.deepEqual(short('Boston, MA & 3 more'), [['Boston', 'MA', 'US']])
  for (const text of ['Remote', 'Fully remote', 'Anywhere', 'Hybrid', '', '  ', 'Work from home'])
    assert.deepEqual(short(text), [], text)
  assert.deepEqual(short('3 Locations'), [[null, null, null]])
})

test('distinguishes the surroundings of a city from the city', () => {
  for (const text of ['Greater Boston Area', 'Boston Metropolitan Area', 'Greater Boston']) {
    assert.deepEqual(
      parsePlaces([text]).map(({ city, area }) => [city, area]),
      [['Boston', true]],
      text,
    )
  }
  assert.equal(parsePlaces(['San Francisco Bay Area'])[0]?.area, true)
  assert.equal(parsePlaces(['Boston, MA'])[0]?.area, undefined)
})

test('accepts structured fields, with a country in any language', () => {
  const [place] = parsePlaces([{ city: 'München', region: 'Bayern', country: 'Deutschland', lat: 48.1, lon: 11.6 }])
  assert.deepEqual(place, {
    raw: 'München, Bayern, Deutschland',
    city: 'München',
    region: 'Bayern',
    country_iso2: 'DE',
    lat: 48.1,
    lon: 11.6,
  })
  assert.equal(placeKey(place!), placeKey(parsePlaces(['Munich, Germany'])[0]!))
  assert.deepEqual(parsePlaces([{ city: 'Remote' }, null, undefined, {}]), [])
  assert.equal(parsePlaces([{ city: 'Paris', country: 'Nowhereland', lat: 0, lon: 999 }])[0]?.country_iso2, null)
})

test('lists the same place once', () => {
  assert.equal(
    parsePlaces(['Boston, MA', 'Boston, Massachusetts, USA', { city: 'boston', region: 'MA', country: 'US' }]).length,
    1,
  )
})

test('knows countries by code and by name', () => {
  const known: readonly [string, string | null][] = [
    ['us', 'US'],
    ['USA', 'US'],
    ['UK', 'GB'],
    ['Allemagne', 'DE'],
    ['Türkiye', 'TR'],
    ['Schweiz', 'CH'],
    ['日本', 'JP'],
    ['Nowhere', null],
    ['', null],
  ]
  for (const [text, code] of known) assert.equal(countryOf(text), code, text)
})
