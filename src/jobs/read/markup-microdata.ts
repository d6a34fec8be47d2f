/** JobPosting in microdata (`itemscope itemtype="https://schema.org/JobPosting"`), as objects in the shape of JSON-LD. */
import type { DocumentSelection, Selection } from '../../core/selection.ts'
import type { MarkupNode } from './markup-node.ts'

/** A page lists tens of jobs. */
const POSTINGS_MAX = 1000

const TEXTS = ['title', 'datePosted', 'validThrough', 'employmentType', 'jobLocationType', 'salaryCurrency', 'industry']
const ADDRESS = ['streetAddress', 'addressLocality', 'addressRegion', 'postalCode', 'addressCountry']
const AMOUNTS = ['minValue', 'maxValue', 'unitText', 'currency']

const prop = (name: string) => `[itemprop~="${name}"]`

export function microdataPostings($: DocumentSelection): MarkupNode[] {
  return $.all('[itemscope][itemtype*="schema.org/JobPosting"]').slice(0, POSTINGS_MAX).map(posting)
}

function posting(place: Selection): MarkupNode {
  const description = place.all(prop('description'))[0]
  const organization = place.all(prop('hiringOrganization'))[0]
  const salary = place.all(prop('baseSalary'))[0]
  return {
    ...texts(place, TEXTS),
    name: first(place, 'name'),
    description: description?.ownAttr('content') ?? description?.html(),
    url: place.attr(`a${prop('url')}, link${prop('url')}`, 'href', { optional: true }),
    identifier: first(place, 'identifier'),
    hiringOrganization: organization && {
      name: first(organization, 'name') ?? valueIn(organization),
      sameAs: organization.attr(`${prop('sameAs')}, ${prop('url')}`, 'href', { optional: true }),
      logo: organization.attr(prop('logo'), 'src', { optional: true }),
    },
    jobLocation: place.all(prop('jobLocation')).map(jobLocation),
    applicantLocationRequirements: place
      .all(prop('applicantLocationRequirements'))
      .map((area) => first(area, 'name') ?? valueIn(area)),
    baseSalary: salary && baseSalary(salary),
  }
}

function jobLocation(place: Selection): unknown {
  const address = texts(place, ADDRESS)
  return Object.keys(address).length > 0 ? { address } : valueIn(place)
}

function baseSalary(place: Selection): unknown {
  const amounts = texts(place, AMOUNTS)
  const values = place
    .all(prop('value'))
    .flatMap((value) => (value.ownAttr('itemscope') === undefined ? valueIn(value) : []))
  if (Object.keys(amounts).length === 0 && values.length === 0) return valueIn(place)
  return { ...amounts, value: values[0] }
}

function texts(place: Selection, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = first(place, name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

function first(place: Selection, name: string): string | undefined {
  const element = place.all(prop(name))[0]
  return element === undefined ? undefined : valueIn(element)
}

/** Machine-readable values are in an attribute, if there is one. */
function valueIn(element: Selection): string | undefined {
  return (element.ownAttr('content') ?? element.ownAttr('datetime') ?? element.text()) || undefined
}
