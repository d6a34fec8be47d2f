/** Places in JobPosting markup: `jobLocation`, and the countries remote staff may live in. */

import { field, isNode, listOf, type MarkupNode, numberOf, textIn, textOf } from './markup-node.ts'
import type { RawPlace } from './posting.ts'

export function placesOf(posting: MarkupNode, company: string | undefined): (RawPlace | string)[] {
  return listOf(field(posting, 'jobLocation')).flatMap((place) => {
    const read = placeOf(place, company)
    return read === undefined ? [] : [read]
  })
}

function placeOf(place: unknown, company: string | undefined): RawPlace | string | undefined {
  if (!isNode(place)) return textOf(place)
  const address = listOf(field(place, 'address'))[0] ?? place
  const name = textIn(place, 'name')
  // Some templates put the employer's name where the name of the place belongs.
  const ownName = name === undefined || name.toLowerCase() === company?.toLowerCase() ? undefined : name
  if (!isNode(address)) return textOf(address) ?? ownName
  const city = textIn(address, 'addressLocality')
  const region = textIn(address, 'addressRegion')
  const country = textIn(address, 'addressCountry')
  const raw = [city, region, country].filter(Boolean).join(', ') || ownName || textIn(address, 'streetAddress')
  if (raw === undefined) return undefined
  const geo = field(place, 'geo')
  const [lat, lon] = isNode(geo) ? [numberOf(field(geo, 'latitude')), numberOf(field(geo, 'longitude'))] : []
  return { raw, city, region, country, lat, lon }
}

/** `applicantLocationRequirements`: countries, by name or code. */
export function applicantCountries(posting: MarkupNode): string[] {
  return listOf(field(posting, 'applicantLocationRequirements')).flatMap((area) => {
    const address = isNode(area) ? field(area, 'address') : undefined
    return (isNode(address) ? textIn(address, 'addressCountry') : undefined) ?? textOf(area) ?? []
  })
}
